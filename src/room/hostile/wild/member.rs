//! Members that send everything that can be sent, and come back when they are put out.

use super::carrier::Carrier;
use super::leader::Leader;
use super::link::{Common, WildLink, answer};
use super::voter::Voter;
use super::*;

/// The role of an attacker, beside that of a member.
#[derive(Debug)]
pub(super) enum Conduct {
    Member,
    /// It leads by records that it makes up.
    Leads(Leader),
    /// It claims that the voters of a roster elected it.
    Elected(Voter),
}

impl Conduct {
    /// The most actions of a session. Leading takes its time.
    fn max_actions(&self) -> usize {
        match self {
            Self::Member => MAX_ACTIONS,
            Self::Leads(_) | Self::Elected(_) => 4 * MAX_ACTIONS,
        }
    }

    fn begin(&mut self) {
        match self {
            Self::Member => {}
            Self::Leads(leader) => leader.begin(),
            Self::Elected(voter) => voter.begin(),
        }
    }

    async fn step(&mut self, wild: &mut Wild<'_>, newest: Record, links: &mut [WildLink]) {
        match self {
            Self::Member => {
                let stamp = Record::undecided(newest.stamp);
                wild.record = wild.record.clone().max(stamp);
            }
            Self::Leads(leader) => leader.step(wild, newest, links).await,
            Self::Elected(voter) => voter.step(wild, newest, links).await,
        }
    }
}

/// One wild member after the other.
pub(super) struct Attack {
    pub(super) prefix: &'static str,
    /// A voter of a roster has one name and one key.
    pub(super) is_voter: bool,
    /// It always keeps to what does not cost a member its link at once.
    pub(super) is_tame: bool,
    /// In which of its steps it sends anything.
    pub(super) acts_in_one_of: usize,
    pub(super) eligible: bool,
    pub(super) conduct: Conduct,
    pub(super) carrier: Option<Arc<Carrier>>,
    pub(super) session: String,
    pub(super) targets: Vec<SocketAddr>,
    pub(super) policy: RoomPolicy,
    /// The honest members, as soon as they were seen.
    pub(super) honest: Vec<Known>,
    pub(super) chance: Chance<'static>,
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) deeds: Arc<Mutex<Deeds>>,
}

impl Attack {
    /// Goes on until the test is over.
    pub(super) async fn run(mut self) {
        let mut attacker = None;
        for n in 0_u64.. {
            if self.is_over() {
                break;
            }
            // Now and then under the same name and key, which may be banned.
            if attacker.is_none() || (!self.is_voter && self.chance.flip()) {
                let name = match self.is_voter {
                    true => self.prefix.to_owned(),
                    false => format!("{}{n}", self.prefix),
                };
                attacker = Some(Attacker::new(&name, &self.session));
            }
            if let Some(attacker) = &attacker {
                self.count(|deeds| deeds.sessions += 1);
                self.session(attacker, n).await;
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn count(&self, change: impl FnOnce(&mut Deeds)) {
        change(&mut self.deeds.lock().expect("no panic"));
    }

    async fn session(&mut self, attacker: &Attacker, n: u64) {
        let me = Known {
            id: id(&attacker.name),
            key: attacker.proof.own_key,
            incarnation: Incarnation {
                started_us: match self.chance.below(8) {
                    0 => u64::MAX,
                    1 => 0,
                    _ => n,
                },
                random: n,
            },
        };
        let mut wild = Wild {
            chance: std::mem::replace(&mut self.chance, Chance::seeded(0)),
            me,
            others: self.honest.clone(),
            record: Record::default(),
            policy: self.policy,
            addresses: vec![attacker.process.address()],
            beats: 0,
            tame: false,
            usurps: !self.eligible && self.policy.authority == Authority::LeaderOnly,
        };
        wild.addresses.extend(self.targets.iter().copied());
        wild.tame = self.is_tame || wild.chance.flip();
        let mut hello = wild.hello(self.eligible);
        if wild.chance.flip() {
            hello.listen_port = attacker.process.address().port();
        }
        if self.carrier.is_some() {
            hello.features |= FEATURE_PATHS;
        }
        let common = Common {
            strategy: self.policy.strategy,
            newest: Arc::default(),
            carrier: self.carrier.clone(),
        };
        self.conduct.begin();
        let mut links = Vec::new();
        for target in self.targets.clone() {
            let entering = self.enter(attacker, target, &hello, &common);
            match timeout(BRIEFLY, entering).await.ok().flatten() {
                Some(Ok(link)) => links.push(link),
                failed => {
                    let code = failed.and_then(Result::err).unwrap_or(1);
                    self.count(|deeds| *deeds.refused.entry(code).or_default() += 1);
                }
            }
        }
        self.count(|deeds| deeds.links += u32::try_from(links.len()).expect("three"));
        let most = self.conduct.max_actions();
        let actions = match wild.chance.flip() {
            // A new leader takes over no link before it has led for a while.
            _ if self.carrier.is_some() => most / 2 + wild.chance.below(most / 2),
            true => 1 + wild.chance.below(20),
            false => 1 + wild.chance.below(most),
        };
        wild.others.clone_from(&self.honest);
        if self.carrier.is_some() {
            self.offer_to_carry(&wild, &mut links).await;
        }
        for _ in 0..actions {
            links.retain(|link| link.connection.close_reason().is_none());
            if links.is_empty() || self.is_over() {
                break;
            }
            let step = self.conduct.step(&mut wild, common.newest(), &mut links);
            let _ = timeout(BRIEFLY, step).await;
            let acts = wild.chance.one_in(self.acts_in_one_of);
            for link in links.iter_mut().filter(|_| acts) {
                self.count(|deeds| deeds.actions += 1);
                // It may be closed, or not be read any further.
                let _ = timeout(Duration::from_millis(200), link.act(&mut wild)).await;
            }
            tokio::select! {
                () = sleep(PACE) => {}
                Some(incoming) = attacker.process.endpoint.accept() => {
                    let link = answer(attacker, incoming, &mut wild, self.eligible, &common);
                    if let Some(link) = timeout(BRIEFLY, link).await.ok().flatten() {
                        links.push(link);
                    }
                }
            }
        }
        self.chance = wild.chance;
    }

    /// Introduces the honest members to each other: one that introduces another carries their packets.
    async fn offer_to_carry(&self, wild: &Wild<'_>, links: &mut [WildLink]) {
        let entries = self.honest.iter().map(|known| PeerEntry {
            id: known.id.clone(),
            key: known.key,
            addresses: Vec::new(),
        });
        let message = Message::PeerList(entries.collect());
        for link in links {
            let _ = timeout(BRIEFLY, link.send_to_core(wild, message.clone())).await;
        }
    }

    /// Dials and sends its Hello.
    async fn enter(
        &mut self,
        attacker: &Attacker,
        target: SocketAddr,
        hello: &Hello,
        common: &Common,
    ) -> Option<Result<WildLink, i32>> {
        let config = attacker.process.client(None, ALPN);
        let connecting = attacker
            .process
            .endpoint
            .connect_with(config, target, "mmn");
        let connection = connecting.ok()?.await.ok()?;
        let (mut send, mut recv) = dial_pake(&connection, &attacker.proof).await.ok()?;
        // One that is too long is not written.
        write_hello(&mut send, hello).await.ok()?;
        let ack = read_hello_ack(&mut recv).await.ok()?;
        let key = peer_fingerprint(&connection)?;
        if !self
            .honest
            .iter()
            .any(|known| known.id == ack.hello.peer_id)
        {
            self.honest.push(Known {
                id: ack.hello.peer_id.clone(),
                key,
                incarnation: ack.hello.incarnation,
            });
        }
        if ack.code != 0 {
            return Some(Err(ack.code));
        }
        send.write_all(&first_words()).await.ok()?;
        Some(Ok(WildLink::start(connection, send, recv, common)))
    }
}
