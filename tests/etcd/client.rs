//! Stands in for the strategy: sends requests to a store and takes its answers.

use std::collections::VecDeque;
use std::time::Duration;

use meta_mystia_network::config::EtcdSettings;
use meta_mystia_network::core::election::engine::{
    Answer, Call, Change, Entry, Failure, FailureKind, Lease, Range, Request, Revision,
};
use meta_mystia_network::etcd::Store;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

/// Request timeout of these tests: shorter than the library's, to save time.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_millis(1500);
/// Longer than any answer takes, failures included.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    store: Store,
    answers: UnboundedReceiver<(Call, Answer)>,
    early: VecDeque<(Call, Answer)>,
    calls: Call,
}

pub(crate) fn settings(endpoints: Vec<String>) -> EtcdSettings {
    EtcdSettings {
        endpoints,
        ca_file: None,
        identity: None,
        login: None,
        request_timeout: REQUEST_TIMEOUT,
    }
}

impl Client {
    pub(crate) fn new(endpoints: Vec<String>) -> Self {
        Self::with(settings(endpoints))
    }

    pub(crate) fn with(settings: EtcdSettings) -> Self {
        let (sender, answers) = unbounded_channel();
        Self {
            store: Store::start(settings, sender).expect("good settings"),
            answers,
            early: VecDeque::new(),
            calls: 0,
        }
    }

    /// Sends a request, and returns the number of the call.
    pub(crate) fn begin(&mut self, request: Request) -> Call {
        self.calls += 1;
        self.store.request(self.calls, request);
        self.calls
    }

    /// The next answer to a call.
    pub(crate) async fn answer(&mut self, call: Call) -> Answer {
        if let Some(place) = self.early.iter().position(|(early, _)| *early == call) {
            return self.early.remove(place).expect("it is there").1;
        }
        loop {
            let (number, answer) = timeout(TIMEOUT, self.answers.recv())
                .await
                .expect("an answer in time")
                .expect("a store that answers");
            if number == call {
                return answer;
            }
            self.early.push_back((number, answer));
        }
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Answer {
        let call = self.begin(request);
        self.answer(call).await
    }

    /// Repeats the request until the store can be reached.
    pub(crate) async fn ask_until_reached(&mut self, request: Request) -> Answer {
        for _ in 0..100 {
            match self.ask(request.clone()).await {
                Answer::Failed(failure) if failure.kind == FailureKind::Unreachable => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                answer => return answer,
            }
        }
        panic!("the store stays out of reach");
    }

    pub(crate) async fn fails(&mut self, request: Request) -> Failure {
        failure(self.ask(request).await)
    }

    /// An answer that comes within a moment, if any.
    pub(crate) async fn soon(&mut self, call: Call) -> Option<Answer> {
        timeout(Duration::from_millis(300), self.answer(call))
            .await
            .ok()
    }

    pub(crate) async fn lease(&mut self, seconds: u64) -> Lease {
        let ttl = Duration::from_secs(seconds);
        match self.ask(Request::Grant { ttl }).await {
            Answer::Granted {
                lease,
                ttl: granted,
            } => {
                assert!(granted >= ttl, "{granted:?}");
                lease
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn keep_alive(&mut self, lease: Lease) -> Duration {
        match self.ask(Request::KeepAlive { lease }).await {
            Answer::Alive { ttl } => ttl,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn create(&mut self, key: &str, value: &str, lease: Lease) -> Entry {
        let (found, revision) = self.entry(create(key, value, lease)).await;
        let found = found.expect("an entry");
        assert!(found.modified <= revision);
        found
    }

    /// An answer that is an entry, with the revision of the store.
    pub(crate) async fn entry(&mut self, request: Request) -> (Option<Entry>, Revision) {
        match self.ask(request).await {
            Answer::Entry { entry, revision } => (entry, revision),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn changes(&mut self, call: Call) -> Vec<Change> {
        match self.answer(call).await {
            Answer::Changes(changes) => changes,
            other => panic!("{other:?}"),
        }
    }

    /// Drops the store, and returns its earlier and later answers.
    pub(crate) async fn dropped(self) -> Vec<(Call, Answer)> {
        let Self {
            store, mut answers, ..
        } = self;
        drop(store);
        let mut all = Vec::new();
        while let Some(answer) = timeout(TIMEOUT, answers.recv())
            .await
            .expect("an end of the answers")
        {
            all.push(answer);
        }
        all
    }
}

pub(crate) fn failure(answer: Answer) -> Failure {
    match answer {
        Answer::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn create(key: &str, value: &str, lease: Lease) -> Request {
    Request::Create {
        key: key.into(),
        value: value.into(),
        lease,
    }
}

pub(crate) fn get(key: &str) -> Request {
    Request::Get { key: key.into() }
}

pub(crate) fn first(prefix: &str) -> Request {
    Request::First {
        prefix: prefix.into(),
        at: None,
    }
}

pub(crate) fn watch(prefix: &str, from: Revision) -> Request {
    Request::Watch {
        range: Range::Prefix(prefix.into()),
        from,
    }
}

pub(crate) fn watch_key(key: &str, from: Revision) -> Request {
    Request::Watch {
        range: Range::Key(key.into()),
        from,
    }
}
