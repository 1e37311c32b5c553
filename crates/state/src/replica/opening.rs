//! A leader gathers what the members have, takes the newest log and opens its ballot in it.

use super::*;
use crate::ballot::Place;
use crate::entry::Contents;
use crate::laboratory::Rule;
use crate::limits::{
    GATHERING_ROUND_TRIPS, LONGEST_GATHERING, MIN_GATHERING, SET_ASIDE_AFTER, SLOWEST_LOG,
};
use crate::wire::Piece;
use staging::Extended;

/// An opening under way.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    ballot: Ballot,
    /// The history that it begins, if none goes on.
    new_history: History,
    began: Time,
    gathered_at: Time,
    /// When the linked members were asked first, of those without an answer.
    asked: BTreeMap<MemberId, Time>,
    answers: BTreeMap<MemberId, Tip>,
    /// Members that were silent for too long; they count for nothing here.
    aside: BTreeSet<MemberId>,
    majority_since: Option<Time>,
    fetch: Option<Fetch>,
}

/// The newest log, on its way from its holder.
#[derive(Debug, Clone)]
pub(super) struct Fetch {
    holder: MemberId,
    target: Place,
    /// Whether it begins with the first entry that the holder has.
    is_whole: bool,
    staging: Staging,
    began: Time,
    heard_at: Time,
}

/// The history that an opening goes on with, as the answers show it.
#[derive(Debug)]
struct Choice {
    history: History,
    /// The holder of its newest log, and that log's end.
    holder: MemberId,
    last: Place,
    roster: Roster,
    is_exclusive: bool,
}

impl Opening {
    pub(super) fn ballot(&self) -> &Ballot {
        &self.ballot
    }

    pub(super) fn next_deadline(&self, replica: &Replica) -> Time {
        let again = self.gathered_at + replica.settings.heartbeat_interval;
        let aside = self.asked.values().map(|asked| *asked + SET_ASIDE_AFTER);
        let fetch = self
            .fetch
            .as_ref()
            .map(|fetch| fetch.next_deadline(replica));
        let dialled = self.began + SET_ASIDE_AFTER;
        let dialled = (!replica.dialled.is_empty()).then_some(dialled);
        let majority = self.majority_since.map(|since| since + replica.gathering());
        let guests = self.began + replica.settings.member_hold;
        let guests = replica.settings.is_fixed_host.then_some(guests);
        let anew = self.may_begin_anew(replica);
        let anew = anew.then_some(self.began + replica.settings.stuck_after);
        let fork = replica.woke_at.map(|woke| woke + SET_ASIDE_AFTER);
        let gathering = self.began + LONGEST_GATHERING;
        let deadlines = aside.chain(fetch).chain(dialled).chain(majority);
        let deadlines = deadlines
            .chain([gathering])
            .chain(guests)
            .chain(anew)
            .chain(fork);
        let next = deadlines
            .filter(|deadline| *deadline > replica.looked_at)
            .min();
        next.map_or(again, |next| next.min(again))
    }

    /// This process stood still for `time`, which does not count.
    pub(super) fn stood_still(&mut self, time: Duration, now: Time) {
        let waits = [&mut self.began].into_iter();
        let waits = waits.chain(self.asked.values_mut());
        let waits = waits.chain(self.majority_since.as_mut());
        let fetch = self.fetch.as_mut();
        let fetch = fetch.map(|fetch| [&mut fetch.began, &mut fetch.heard_at]);
        for since in waits.chain(fetch.into_iter().flatten()) {
            *since = (*since + time).min(now);
        }
    }

    /// Whether a voter of a static room was set aside, and no log is on its way. Without that voter there may be no majority,
    /// and the leader neither forks nor asks it again under this ballot.
    fn may_begin_anew(&self, replica: &Replica) -> bool {
        replica.is_static() && !self.aside.is_empty() && self.fetch.is_none()
    }

    /// The member whose log is on its way.
    fn holder(&self) -> Option<&MemberId> {
        self.fetch.as_ref().map(|fetch| &fetch.holder)
    }

    /// A member counts for nothing in this opening.
    fn set_aside(&mut self, member: MemberId) {
        self.asked.remove(&member);
        self.answers.remove(&member);
        self.aside.insert(member);
    }
}

impl Fetch {
    /// Adds entries; returns the new end of what has arrived, if they are news.
    fn extend(
        &mut self,
        now: Time,
        own: &Log,
        previous: Option<&Place>,
        entries: Vec<Entry>,
        options: &Options,
    ) -> Result<Option<Place>, Violation> {
        let before = self.staging.last(own);
        let extended = self.staging.extend(own, previous, entries, options)?;
        let last = self.staging.last(own);
        if extended == Extended::Lacks || last == before {
            return Ok(None);
        }
        self.heard_at = now;
        Ok(last)
    }

    /// Adds a piece of tables. One that follows nothing was on its way when this member fetched another log meanwhile.
    pub(super) fn add_piece(&mut self, now: Time, piece: &Piece) -> Result<(), Violation> {
        if !self.staging.awaits(piece) {
            return Ok(());
        }
        self.heard_at = now;
        self.staging.add_piece(piece)
    }

    /// How long it has taken beyond the time for its bytes.
    fn wasted(&self, now: Time) -> Duration {
        now.since(self.began).saturating_sub(self.time_for_bytes())
    }

    fn time_for_bytes(&self) -> Duration {
        let bytes = u32::try_from(self.staging.arrived_bytes()).unwrap_or(u32::MAX);
        Duration::from_secs(1) * bytes / SLOWEST_LOG as u32
    }

    /// When its holder is waited for no longer.
    fn next_deadline(&self, replica: &Replica) -> Time {
        let left = replica
            .wait_budgets
            .left(replica.looked_at, &self.holder.peer);
        let slow = self.began + self.time_for_bytes() + left;
        slow.min(self.heard_at + SET_ASIDE_AFTER)
    }
}

impl Replica {
    /// Begins to gather, under a ballot above all that this member has seen.
    pub(super) fn start_opening(&mut self, now: Time) {
        if self.leader.is_none() || self.is_leaving() {
            return;
        }
        let number = self.seen_number.saturating_add(1);
        let leader = self.me.clone();
        let ballot = Ballot { number, leader };
        self.stop_leading();
        self.promise(&ballot);
        self.seen_number = self.seen_number.max(number);
        let new_history = self.draw_history(&ballot);
        self.role = Role::Opening(Opening {
            ballot,
            new_history,
            began: now,
            gathered_at: now,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            aside: BTreeSet::new(),
            majority_since: None,
            fetch: None,
        });
        for peer in self.peers.keys().cloned().collect::<Vec<_>>() {
            self.gather_from(now, &peer);
        }
    }

    /// Asks a member, if this one gathers.
    pub(super) fn gather_from(&mut self, now: Time, peer: &PeerId) {
        let (Role::Opening(opening), Some(linked)) = (&mut self.role, self.peers.get(peer)) else {
            return;
        };
        opening.asked.entry(linked.member().clone()).or_insert(now);
        let ballot = opening.ballot.clone();
        self.send(peer, Frame::Gather { ballot });
    }

    /// A member without a link counts no more.
    pub(super) fn forget_answer(&mut self, now: Time, member: &MemberId) {
        let Role::Opening(opening) = &mut self.role else {
            return;
        };
        opening.asked.remove(member);
        opening.answers.remove(member);
        if opening.holder() == Some(member) {
            self.end_fetch(now);
        }
    }

    /// Takes an answer, the first one on a link, if this member gathers under its ballot.
    pub(super) fn take_answer(&mut self, now: Time, from: &MemberId, tip: &Tip) {
        let Role::Opening(opening) = &mut self.role else {
            return;
        };
        let answers = tip.answers.as_ref() == Some(&opening.ballot);
        // Answers that never end would make it fetch one log after the other.
        let is_late = opening.fetch.is_some() && now.since(opening.began) >= LONGEST_GATHERING;
        if !answers || is_late || opening.aside.contains(from) {
            return;
        }
        if self.wait_budgets.left(now, &from.peer) == Duration::ZERO {
            return opening.set_aside(from.clone());
        }
        opening.asked.remove(from);
        let answer = opening.answers.entry(from.clone());
        answer.or_insert_with(|| tip.clone());
    }

    /// The log that this member fetches from `from` under its ballot.
    pub(super) fn fetch_from(&mut self, from: &PeerId, ballot: &Ballot) -> Option<&mut Fetch> {
        let Role::Opening(opening) = &mut self.role else {
            return None;
        };
        let fetch = opening.fetch.as_mut()?;
        let is_it = fetch.holder.peer == *from && opening.ballot == *ballot;
        is_it.then_some(fetch)
    }

    pub(super) fn take_fetched(
        &mut self,
        now: Time,
        from: &PeerId,
        ballot: &Ballot,
        previous: Option<Place>,
        entries: Vec<Entry>,
    ) -> Result<(), Violation> {
        let (log, options) = (std::mem::take(&mut self.log), self.settings.options);
        let fetch = self.fetch_from(from, ballot);
        let news = fetch.map(|fetch| fetch.extend(now, &log, previous.as_ref(), entries, &options));
        self.log = log;
        // Without news it answers an earlier question.
        if let Some(previous) = news.transpose()?.flatten() {
            let (ballot, previous) = (ballot.clone(), Some(previous));
            self.send(from, Frame::Fetch { ballot, previous });
        }
        Ok(())
    }

    pub(super) fn progress_opening(&mut self, now: Time) {
        self.set_silent_aside(now);
        self.gather_again(now);
        // A static room may have to wait for more voters: until then no log is fetched, whose holder would count as silent.
        let choice = self.ready_choice(now);
        let choice = choice.filter(|choice| self.terms(choice.as_ref()).is_some());
        if let Some(choice) = choice {
            if !self.has_log_of(&choice) {
                self.fetch(now, &choice);
            } else if self.is_as_shown(&choice) {
                self.open(now, choice);
            } else {
                self.fetch_whole(now);
            }
        }
        self.begin_anew(now);
    }

    /// Gathers under another ballot if this one leads to nothing: a voter that was silent may answer again.
    fn begin_anew(&mut self, now: Time) {
        let Role::Opening(opening) = &self.role else {
            return;
        };
        let is_stuck = now.since(opening.began) >= self.settings.stuck_after;
        if is_stuck && opening.may_begin_anew(self) {
            self.wait_budgets.forgive();
            self.start_opening(now);
        }
    }

    fn set_silent_aside(&mut self, now: Time) {
        let Role::Opening(opening) = &mut self.role else {
            return;
        };
        let aside = &mut opening.aside;
        opening.asked.retain(|member, asked| {
            let is_silent = now.since(*asked) >= SET_ASIDE_AFTER;
            if is_silent {
                aside.insert(member.clone());
            }
            !is_silent
        });
        let Role::Opening(opening) = &self.role else {
            return;
        };
        let is_over = |fetch: &Fetch| now >= fetch.next_deadline(self);
        if !opening.fetch.as_ref().is_some_and(is_over) {
            return;
        }
        let sets_aside = self.keeps(Rule::SetAside);
        if let Some(fetch) = self.end_fetch(now)
            && let Role::Opening(opening) = &mut self.role
        {
            match sets_aside {
                true => opening.set_aside(fetch.holder),
                false => _ = opening.aside.insert(fetch.holder),
            }
        }
    }

    /// Ends the fetch under way, which was in vain: that costs its holder.
    fn end_fetch(&mut self, now: Time) -> Option<Fetch> {
        let Role::Opening(opening) = &mut self.role else {
            return None;
        };
        let fetch = opening.fetch.take()?;
        let (peer, wasted) = (&fetch.holder.peer, fetch.wasted(now));
        self.wait_budgets.note_wasted(now, peer, wasted);
        Some(fetch)
    }

    fn gather_again(&mut self, now: Time) {
        let interval = self.settings.heartbeat_interval;
        let Role::Opening(opening) = &mut self.role else {
            return;
        };
        if now.since(opening.gathered_at) < interval {
            return;
        }
        opening.gathered_at = now;
        let waiting: Vec<_> = opening
            .asked
            .keys()
            .map(|member| member.peer.clone())
            .collect();
        for peer in waiting {
            self.gather_from(now, &peer);
        }
    }

    /// How long linked members are waited for after a majority has answered.
    fn gathering(&self) -> Duration {
        let round_trips = self.peers.values().map(|peer| peer.round_trip);
        let longest = round_trips.max().unwrap_or_default();
        (GATHERING_ROUND_TRIPS * longest).max(MIN_GATHERING)
    }

    /// The choice, once nothing more is waited for.
    fn ready_choice(&mut self, now: Time) -> Option<Option<Choice>> {
        let Role::Opening(opening) = &self.role else {
            return None;
        };
        let choice = self.choice(opening);
        let has_majority = match &choice {
            Some(choice) => choice.is_exclusive,
            None => self.may_open_first(opening),
        };
        let everybody = opening.asked.is_empty();
        let awaits_guests = self.awaits_former_guests(now, opening, choice.as_ref());
        let is_dialling = !self.dialled.is_empty() && now.since(opening.began) < SET_ASIDE_AFTER;
        let several = self.shows_several_histories(opening);
        let is_allowed = has_majority || self.may_fork(now);
        let gathering = self.gathering();
        let Role::Opening(opening) = &mut self.role else {
            return None;
        };
        opening.majority_since = match has_majority {
            true => opening.majority_since.or(Some(now)),
            false => None,
        };
        let waited = |since: Time| now.since(since) >= gathering;
        let is_over = now.since(opening.began) >= LONGEST_GATHERING;
        let has_waited = is_over || !several && opening.majority_since.is_some_and(waited);
        let is_ready = has_waited || everybody && !(several && is_dialling);
        (is_ready && is_allowed && !awaits_guests).then_some(choice)
    }

    /// Whether a restarted fixed host waits for the other members of a history of its former process: with a majority of
    /// them it goes on without a fork.
    fn awaits_former_guests(&self, now: Time, opening: &Opening, choice: Option<&Choice>) -> bool {
        let may_wait = now.since(opening.began) < self.settings.member_hold;
        let waits = self.settings.is_fixed_host && may_wait;
        let Some(choice) = choice.filter(|choice| waits && !choice.is_exclusive) else {
            return false;
        };
        let roster = choice.roster.iter();
        let (own, guests): (Vec<_>, Vec<_>) =
            roster.partition(|member| member.peer == self.me.peer);
        let has_answered = |guest: &&MemberId| opening.answers.contains_key(*guest);
        own.iter().any(|process| **process != self.me) && !guests.iter().all(has_answered)
    }

    fn shows_several_histories(&self, opening: &Opening) -> bool {
        let own = self.log.history();
        let mut shown = opening.answers.values().filter_map(|tip| tip.history);
        match own {
            Some(own) => shown.any(|history| history != own),
            None => shown
                .next()
                .is_some_and(|first| shown.any(|history| history != first)),
        }
    }

    /// All answers, this member's own among them.
    fn tips<'a>(&'a self, opening: &'a Opening, own: &'a Tip) -> BTreeMap<&'a MemberId, &'a Tip> {
        let answers = opening.answers.iter();
        answers.chain([(&self.me, own)]).collect()
    }

    /// Whether a room without any log may begin one.
    fn may_open_first(&self, opening: &Opening) -> bool {
        let own = self.tip(&self.me.peer, None);
        let tips = self.tips(opening, &own);
        let has_answered =
            |member: &MemberId| tips.get(member).is_some_and(|tip| !tip.is_recovering);
        match self.settings.quorum {
            Quorum::Dynamic => true,
            Quorum::Static(_) => self.is_majority(&Roster::new(), has_answered),
        }
    }

    fn choice(&self, opening: &Opening) -> Option<Choice> {
        let own = self.tip(&self.me.peer, None);
        let tips = self.tips(opening, &own);
        let feasible = tips
            .iter()
            .filter(|(member, _)| !opening.aside.contains(*member));
        let histories: BTreeSet<_> = feasible.filter_map(|(_, tip)| tip.history).collect();
        let aside = &opening.aside;
        let ranked = histories
            .into_iter()
            .map(|history| self.rank(history, &tips, aside));
        let by_rank = |one: &(Rank, Choice), other: &(Rank, Choice)| one.0.cmp(&other.0);
        let by_last = |one: &(Rank, Choice), other: &(Rank, Choice)| one.1.last.cmp(&other.1.last);
        let ranked: Vec<_> = ranked.collect();
        let has_majority = ranked.iter().any(|(rank, _)| rank.is_exclusive);
        let best = match self.is_static() && !has_majority {
            // It begins a new history, if at all.
            true => ranked.into_iter().max_by(by_last),
            false => ranked.into_iter().max_by(by_rank),
        };
        best.map(|(_, choice)| choice)
    }

    /// The order of histories, and the choice of this one.
    fn rank(
        &self,
        history: History,
        tips: &BTreeMap<&MemberId, &Tip>,
        aside: &BTreeSet<MemberId>,
    ) -> (Rank, Choice) {
        let holds = |tip: &Tip| tip.history == Some(history);
        let by_ballot = self.keeps(Rule::NewestByBallot);
        let newness = |tip: &Tip| {
            let index = tip.last.as_ref().map_or(0, |last| last.index);
            (if by_ballot { 0 } else { index }, tip.last.clone())
        };
        let holders = tips
            .iter()
            .filter(|(member, tip)| holds(tip) && !aside.contains(*member));
        let newest = holders.max_by(|(_, one), (_, other)| newness(one).cmp(&newness(other)));
        let (holder, newest) = newest.expect("the history comes from one of them");
        let roster = newest.roster.clone();
        let counts = |member: &MemberId| match tips.get(member) {
            // A static voter that never held state answers in any history.
            Some(tip) => {
                let is_blank = self.is_static() && tip.history.is_none();
                (holds(tip) || is_blank) && (!tip.is_recovering || !self.keeps(Rule::Recovery))
            }
            None => false,
        };
        let is_exclusive = self.is_majority(&roster, counts);
        let rank = Rank {
            is_used: tips.values().any(|tip| holds(tip) && tip.is_used),
            is_older: !self.settings.is_fixed_host || self.began != Some(history),
            is_exclusive,
            answered: roster.iter().filter(|member| counts(member)).count(),
            roster: roster.len(),
            is_own: self.log.history() == Some(history),
            history,
        };
        let choice = Choice {
            history,
            holder: (*holder).clone(),
            last: newest
                .last
                .clone()
                .expect("a log with a history has an entry"),
            roster,
            is_exclusive,
        };
        (rank, choice)
    }

    /// Whether this member has the chosen log, its own or a fetched one.
    fn has_log_of(&self, choice: &Option<Choice>) -> bool {
        let (Some(choice), Role::Opening(opening)) = (choice, &self.role) else {
            return true;
        };
        let fetched = opening.fetch.as_ref().is_some_and(|fetch| {
            fetch.target == choice.last
                && fetch.staging.last(&self.log).as_ref() == Some(&choice.last)
        });
        fetched || self.log.last() == Some(&choice.last)
    }

    /// Whether the chosen log is what its holder's Tip showed.
    fn is_as_shown(&self, choice: &Option<Choice>) -> bool {
        let (Some(choice), Role::Opening(opening)) = (choice, &self.role) else {
            return true;
        };
        match &opening.fetch {
            Some(fetch) if fetch.target == choice.last && self.log.last() != Some(&choice.last) => {
                let fetched = fetch.staging.end(&self.log);
                fetched.history() == Some(choice.history) && *fetched.roster() == choice.roster
            }
            _ => true,
        }
    }

    /// Fetches the whole log after its beginning turned out to differ from this member's, which happens only if a leader has
    /// forged one of them. A holder whose whole log differs from its Tip is set aside.
    fn fetch_whole(&mut self, now: Time) {
        let Some(fetch) = self.end_fetch(now) else {
            return;
        };
        match &mut self.role {
            Role::Opening(opening) if fetch.is_whole => opening.set_aside(fetch.holder),
            _ => self.begin_fetch(now, fetch.holder, fetch.target, None),
        }
    }

    /// Asks the holder of the newest log for what this member lacks of it.
    fn fetch(&mut self, now: Time, choice: &Option<Choice>) {
        let (Some(choice), Role::Opening(opening)) = (choice, &mut self.role) else {
            return;
        };
        if opening
            .fetch
            .as_ref()
            .is_some_and(|fetch| fetch.target == choice.last)
        {
            return;
        }
        let Some(tip) = opening.answers.get(&choice.holder) else {
            return;
        };
        let shared = self.log.common_prefix(tip);
        let previous = self.log.place(shared);
        self.begin_fetch(now, choice.holder.clone(), choice.last.clone(), previous);
    }

    fn begin_fetch(&mut self, now: Time, holder: MemberId, target: Place, previous: Option<Place>) {
        let Role::Opening(opening) = &mut self.role else {
            return;
        };
        let ballot = opening.ballot.clone();
        opening.fetch = Some(Fetch {
            target,
            is_whole: previous.is_none(),
            staging: Staging::new(ballot.clone()),
            began: now,
            heard_at: now,
            holder: holder.clone(),
        });
        self.send(&holder.peer, Frame::Fetch { ballot, previous });
    }

    /// Opens the ballot. The chosen log replaces this member's.
    fn open(&mut self, now: Time, choice: Option<Choice>) {
        let Some(terms) = self.terms(choice.as_ref()) else {
            return;
        };
        let Role::Opening(opening) = std::mem::replace(&mut self.role, Role::Following) else {
            return;
        };
        if let Some(fetch) = opening.fetch
            && choice.as_ref().map(|choice| &choice.last) == Some(&fetch.target)
            && self.log.last() != Some(&fetch.target)
        {
            self.replace_log(fetch.staging.into_log(&self.log));
        }
        if choice.is_none() {
            self.began = Some(terms.history);
        }
        if Some(terms.history) != self.log.history() {
            self.forget_confirmations();
        }
        self.begin_to_lead(now, opening.ballot, terms);
    }

    /// The opening's terms; `None` if a static room must wait.
    fn terms(&self, choice: Option<&Choice>) -> Option<Terms> {
        let Role::Opening(opening) = &self.role else {
            return None;
        };
        let history = opening.new_history;
        let answered: Roster = opening
            .answers
            .keys()
            .cloned()
            .chain([self.me.clone()])
            .collect();
        if self.is_static() {
            let going_on = match choice {
                Some(choice) => choice.is_exclusive.then_some(choice.history),
                None => self.may_open_first(opening).then_some(History::STATIC),
            };
            let terms = Terms {
                history: going_on.unwrap_or(history),
                is_exclusive: going_on.is_some(),
                roster: answered,
            };
            return (terms.is_exclusive || self.is_all(&terms.roster)).then_some(terms);
        }
        let Some(choice) = choice else {
            let roster = self.eligible_of(answered);
            return Some(Terms {
                history,
                is_exclusive: true,
                roster,
            });
        };
        if choice.is_exclusive {
            let (history, roster) = (choice.history, choice.roster.clone());
            return Some(Terms {
                history,
                is_exclusive: true,
                roster,
            });
        }
        let holds = |member: &MemberId| {
            let tip = opening.answers.get(member);
            *member == self.me || tip.is_some_and(|tip| tip.history == Some(choice.history))
        };
        let holders = answered.into_iter().filter(holds).collect();
        let roster = self.eligible_of(holders);
        Some(Terms {
            history,
            is_exclusive: false,
            roster,
        })
    }

    /// The eligible ones of these members, and this member.
    fn eligible_of(&self, members: Roster) -> Roster {
        let counts = |member: &MemberId| {
            let peer = self.peers.get(&member.peer);
            *member == self.me || peer.is_some_and(|peer| peer.is_eligible)
        };
        members.into_iter().filter(counts).collect()
    }

    /// Whether all static voters are among `answered`.
    fn is_all(&self, answered: &Roster) -> bool {
        match &self.settings.quorum {
            Quorum::Dynamic => false,
            Quorum::Static(voters) => {
                let names: BTreeSet<_> = answered.iter().map(|member| &member.peer).collect();
                voters.iter().all(|voter| names.contains(voter))
            }
        }
    }
}

/// The order in which an opening prefers histories; the greatest goes on.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_used: bool,
    /// Whether a restarted fixed host has not begun it, while it did not know of another.
    is_older: bool,
    is_exclusive: bool,
    answered: usize,
    roster: usize,
    is_own: bool,
    history: History,
}

/// The fields of an opening.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) history: History,
    pub(super) is_exclusive: bool,
    pub(super) roster: Roster,
}

impl Terms {
    pub(super) fn contents(self) -> Contents {
        Contents::Open {
            history: self.history,
            exclusive: self.is_exclusive,
            roster: self.roster,
        }
    }
}
