//! A member takes what others send: it promises, adopts and answers.

use super::*;
use crate::ballot::Place;
use crate::laboratory::Rule;
use crate::wire::Piece;
use staging::{Extended, check_order};

impl Replica {
    pub(super) fn receive(
        &mut self,
        now: Time,
        from: &PeerId,
        frame: Frame,
        largest_number: u64,
    ) -> Result<(), Violation> {
        let Some(peer) = self.peers.get(from) else {
            return Ok(());
        };
        let sender = peer.member().clone();
        if let Some(number) = frame.largest_number()
            && number > largest_number
        {
            let most = largest_number;
            return Err(Violation::Number { number, most });
        }
        if frame
            .leaders_ballot()
            .is_some_and(|ballot| ballot.leader != sender)
        {
            return Err(Violation::ForeignBallot);
        }
        match frame {
            Frame::Tip(tip) => self.take_tip(now, from, tip),
            Frame::Gather { ballot } => self.answer_gathering(from, ballot),
            Frame::Append {
                ballot,
                previous,
                confirmed,
                end,
                entries,
            } => {
                if self.accepts(from, &ballot) {
                    let frame = Appended {
                        ballot,
                        previous,
                        confirmed,
                        end,
                        entries,
                    };
                    self.take_entries(from, frame)?;
                }
            }
            Frame::Tables { ballot, piece } => self.take_piece(now, from, ballot, &piece)?,
            Frame::Behind { promised } => self.fall_behind(now, from, promised.number),
            Frame::Have {
                ballot,
                index,
                is_recovering,
            } => {
                self.take_have(from, &ballot, index, is_recovering)?;
            }
            Frame::Staged { ballot, index } => self.take_staged(from, &ballot, index),
            Frame::Submit { ballot, requests } => self.take_requests(from, &ballot, requests)?,
            Frame::Fetch { ballot, previous } => self.answer_fetch(from, ballot, previous),
            Frame::Entries {
                ballot,
                previous,
                entries,
            } => {
                self.take_fetched(now, from, &ballot, previous, entries)?;
            }
            Frame::Want {
                history,
                from: index,
            } => self.take_want(now, from, history, index),
            Frame::Part { history, piece } => self.take_part(now, from, history, &piece)?,
            Frame::PartArrived {
                history,
                index,
                received,
            } => self.take_part_arrived(now, from, (history, index), received),
        }
        Ok(())
    }

    /// The election names another leader, or none.
    pub(super) fn follow(&mut self, now: Time, leader: Option<MemberId>) {
        if self.leader == leader {
            return;
        }
        self.leader = leader;
        let Some(leader) = self.leader.clone() else {
            return self.stop_leading();
        };
        if leader == self.me {
            return self.start_opening(now);
        }
        self.stop_leading();
        self.requests.send_again();
        self.show_tip(&leader.peer);
    }

    pub(super) fn stop_leading(&mut self) {
        if matches!(self.role, Role::Following) {
            return;
        }
        self.role = Role::Following;
        for peer in self.peers.values_mut() {
            peer.begin_ballot();
        }
    }

    /// Raises the promise. A static voter's is on disk before anything that follows from it.
    pub(super) fn promise(&mut self, ballot: &Ballot) {
        self.seen_number = self.seen_number.max(ballot.number);
        if self.keeps(Rule::Promise) {
            self.promised = self.promised.take().max(Some(ballot.clone()));
        }
        if self
            .staging
            .as_ref()
            .is_some_and(|staging| *staging.ballot() < *ballot)
        {
            self.staging = None;
        }
        self.persist();
    }

    /// Writes what a static voter must not forget, if it has changed.
    pub(super) fn persist(&mut self) {
        let promised = self
            .promised
            .clone()
            .filter(|_| self.keeps(Rule::PromiseOnDisk));
        let saved = Saved {
            promised,
            has_held: self.saved.has_held || !self.log.is_empty(),
        };
        if self.is_voter() && saved != self.saved {
            self.saved = saved.clone();
            self.outputs.push_back(Output::Persist(saved));
        }
    }

    fn is_voter(&self) -> bool {
        match &self.settings.quorum {
            Quorum::Dynamic => false,
            Quorum::Static(voters) => voters.contains(&self.me.peer),
        }
    }

    fn answer_gathering(&mut self, from: &PeerId, ballot: Ballot) {
        if !self.follows(&ballot.leader) {
            return;
        }
        if self.refuses(from, &ballot) {
            return;
        }
        self.stop_leading();
        self.promise(&ballot);
        if let Some(peer) = self.peers.get_mut(from) {
            peer.answered = Some(ballot.clone());
        }
        let tip = self.tip(from, Some(ballot));
        self.send(from, Frame::Tip(tip));
    }

    /// Whether the ballot is lower than the one promised; the sender learns that.
    fn refuses(&mut self, from: &PeerId, ballot: &Ballot) -> bool {
        let higher = self.promised.as_ref().filter(|promised| *promised > ballot);
        let Some(promised) = higher.cloned() else {
            return false;
        };
        self.send(from, Frame::Behind { promised });
        true
    }

    /// Whether this member takes entries of the ballot. Then it accepts no lower one any more.
    fn accepts(&mut self, from: &PeerId, ballot: &Ballot) -> bool {
        if self.refuses(from, ballot) {
            return false;
        }
        if self.follows(&self.me) {
            // The election will show one of both leaders that it is none.
            self.seen_number = self.seen_number.max(ballot.number);
            return false;
        }
        if self.promised.as_ref() != Some(ballot) {
            self.stop_leading();
            self.promise(ballot);
        }
        true
    }

    fn take_entries(&mut self, from: &PeerId, frame: Appended) -> Result<(), Violation> {
        if let Recovery::Until(end) = &mut self.recovery {
            end.get_or_insert(frame.end);
        }
        if self.adopted.as_ref() == Some(&frame.ballot) {
            return self.append_entries(from, frame);
        }
        let mut staging = self.take_staging(frame.ballot);
        let (previous, options) = (frame.previous.as_ref(), &self.settings.options);
        let extended = staging.extend(&self.log, previous, frame.entries, options)?;
        let is_complete = staging.opened_history().is_some() || !self.keeps(Rule::Staging);
        self.staging = Some(staging);
        if extended == Extended::Lacks {
            self.show_tip(from);
            return Ok(());
        }
        self.have_due = true;
        if is_complete {
            self.adopt(from, frame.confirmed);
        }
        Ok(())
    }

    /// Entries of the ballot that this member has adopted.
    fn append_entries(&mut self, from: &PeerId, frame: Appended) -> Result<(), Violation> {
        if !self.log.reaches(frame.previous.as_ref()) {
            self.show_tip(from);
            return Ok(());
        }
        let mut before = frame.previous;
        for entry in frame.entries {
            check_order(before.as_ref(), &entry, &frame.ballot)?;
            let index = before.map_or(0, |place| place.index) + 1;
            let place = Place {
                ballot: entry.ballot.clone(),
                index,
            };
            if self.log.place(index).as_ref() != Some(&place) {
                self.log.truncate(index - 1);
                self.append_entry(entry);
            }
            before = Some(place);
        }
        self.have_due = true;
        self.confirm(frame.confirmed.min(self.log.index()));
        self.end_recovery();
        Ok(())
    }

    /// The staged log replaces the present one.
    fn adopt(&mut self, from: &PeerId, confirmed: u64) {
        let Some(staging) = self.staging.take() else {
            return;
        };
        let history = staging.opened_history().or(self.log.history());
        let is_other = !self.log.is_empty() && history != self.log.history();
        if is_other && !self.is_static() && !self.has_answered(from, staging.ballot()) {
            // A leader that gathers all that its members have would have asked.
            self.show_tip(from);
            return;
        }
        let ballot = staging.ballot().clone();
        self.replace_log(staging.into_log(&self.log));
        self.adopted = Some(ballot);
        self.confirm(confirmed.min(self.log.index()));
        self.end_recovery();
        self.persist();
        self.requests.send_again();
    }

    /// Another log takes the place of this member's. All logs of a history have its confirmed entries.
    pub(super) fn replace_log(&mut self, log: Log) {
        let is_other = log.history() != self.log.history();
        self.note_forgotten(&log);
        let options = &self.settings.options;
        self.delivery.note_replaced(&self.log, &log, options);
        self.log = log;
        self.snapshots.note_replaced(&self.log);
        // A leader that forges its log may have named more than there is.
        self.confirmed = self.confirmed.min(self.log.index());
        if is_other {
            self.forget_confirmations();
            self.refuse_conditions();
        }
    }

    /// In another history nothing is known to be confirmed, not even in the part that both share: its leader's frames name the index.
    pub(super) fn forget_confirmations(&mut self) {
        self.confirmed = match self.keeps(Rule::ConfirmedAnew) {
            true => 0,
            false => self.confirmed.min(self.log.index()),
        };
    }

    /// Refuses the requests that depend on the state of another history than the log's.
    pub(super) fn refuse_conditions(&mut self) {
        if self.keeps(Rule::ConditionsOfTheirHistory) {
            let row = self.log.end().last_number(&self.me).unwrap_or(0);
            self.requests.refuse_conditions(self.log.history(), row);
        }
    }

    fn has_answered(&self, from: &PeerId, ballot: &Ballot) -> bool {
        self.peers
            .get(from)
            .is_some_and(|peer| peer.answered.as_ref() == Some(ballot))
    }

    /// Entries up to `confirmed` are confirmed; in a small roster, so is everything that arrives.
    fn confirm(&mut self, confirmed: u64) {
        let confirmed = match self.confirms_on_arrival() {
            true => self.log.index(),
            false => confirmed,
        };
        self.confirmed = self.confirmed.max(confirmed);
    }

    /// Whether the leader and this member are a majority.
    fn confirms_on_arrival(&self) -> bool {
        let Some(ballot) = &self.adopted else {
            return false;
        };
        let counts = |member: &MemberId| match &self.settings.quorum {
            Quorum::Dynamic => self.roster().contains(member),
            Quorum::Static(voters) => voters.contains(&member.peer),
        };
        let size = match &self.settings.quorum {
            Quorum::Dynamic => self.roster().len(),
            Quorum::Static(voters) => voters.len(),
        };
        let leader_counts = counts(&ballot.leader) || !self.keeps(Rule::LeaderOnRoster);
        size <= 3 && !self.is_recovering() && counts(&self.me) && leader_counts
    }

    fn end_recovery(&mut self) {
        let is_over = match self.recovery {
            Recovery::Until(_) if !self.keeps(Rule::RecoverToTheEnd) => true,
            Recovery::Until(end) => end.is_some_and(|end| self.log.index() >= end),
            Recovery::Whole => false,
        };
        if is_over {
            self.recovery = Recovery::Whole;
        }
    }

    /// A piece of tables: of the leader's log, or of one that this member fetches.
    fn take_piece(
        &mut self,
        now: Time,
        from: &PeerId,
        ballot: Ballot,
        piece: &Piece,
    ) -> Result<(), Violation> {
        if let Some(fetch) = self.fetch_from(from, &ballot) {
            return fetch.add_piece(now, piece);
        }
        if ballot.leader == self.me {
            // It answers an earlier question.
            return Ok(());
        }
        if *from != ballot.leader.peer || !self.is_linked(&ballot.leader) {
            return Err(Violation::ForeignBallot);
        }
        let is_known = self.adopted.as_ref() == Some(&ballot) && piece.index <= self.log.index();
        if is_known || !self.accepts(from, &ballot) {
            return Ok(());
        }
        let mut staging = self.take_staging(ballot);
        staging.add_piece(piece)?;
        let is_complete = staging.opened_history().is_some();
        self.staging = Some(staging);
        self.have_due = true;
        if is_complete {
            self.adopt(from, 0);
        }
        Ok(())
    }

    /// The log of the ballot as far as it has arrived. One whose next frame breaks the protocol is gone.
    fn take_staging(&mut self, ballot: Ballot) -> Staging {
        let staging = self.staging.take();
        let staging = staging.filter(|staging| *staging.ballot() == ballot);
        staging.unwrap_or_else(|| Staging::new(ballot))
    }

    /// Shows the leader what this member has, if it follows that leader.
    fn show_tip(&mut self, from: &PeerId) {
        if self.follows_peer(from) {
            let tip = self.tip(from, None);
            self.send(from, Frame::Tip(tip));
        }
    }

    /// Answers what the leader has sent in this turn.
    pub(super) fn send_have(&mut self) {
        if !std::mem::take(&mut self.have_due) {
            return;
        }
        let is_recovering = self.is_recovering();
        let frame = match (&self.staging, &self.adopted) {
            (Some(staging), _) => Frame::Staged {
                ballot: staging.ballot().clone(),
                index: staging.index(),
            },
            (None, Some(ballot)) => Frame::Have {
                ballot: ballot.clone(),
                index: self.log.index(),
                is_recovering,
            },
            (None, None) => return,
        };
        let leader = match &frame {
            Frame::Have { ballot, .. } | Frame::Staged { ballot, .. } => ballot.leader.clone(),
            _ => return,
        };
        if self.is_linked(&leader) {
            self.send(&leader.peer, frame);
        }
    }

    pub(super) fn is_linked(&self, member: &MemberId) -> bool {
        let peer = self.peers.get(&member.peer);
        peer.is_some_and(|peer| peer.member() == member)
    }
}

/// The fields of [`Frame::Append`].
struct Appended {
    ballot: Ballot,
    previous: Option<Place>,
    confirmed: u64,
    end: u64,
    entries: Vec<Entry>,
}
