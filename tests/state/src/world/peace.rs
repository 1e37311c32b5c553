//! The end of a run: everything works again, and the members must agree.

use super::*;

/// A healed room agrees within this time.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);
/// One in which little time has passed: a member that has made a leader open again and again waits up to 320 s for the next one.
const CALM_SETTLES_WITHIN: Duration = Duration::from_secs(400);

impl World {
    /// Everything works again: all members run and are linked, and the election names one for good.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.lies) {
            // Its frames on the way are gone, and a member that keeps to the protocol takes its place.
            self.cut_all(LIAR)?;
            self.crash(LIAR)?;
        }
        for index in 0..self.case.members {
            if self.nodes[index].is_leaving {
                self.crash(index)?;
            }
            if !self.is_up(index) {
                self.start(index);
            }
            for node in 0..self.case.members {
                self.handle(node, Input::Eligible(name(index), true))?;
            }
        }
        self.heal()?;
        let leader = self.elect_for_good()?;
        self.agree()?;
        match self.case.has_liar {
            true => Ok(()),
            false => self.check_newcomer(leader),
        }
    }

    /// S12: a member that starts anew in a healed room gets a complete state, if the host of a linked member has one.
    fn check_newcomer(&mut self, leader: usize) -> Result<(), String> {
        let newcomer = (leader + 1) % self.case.members;
        if newcomer == leader || !self.may_lose_one() {
            return Ok(());
        }
        let can_provide = (0..self.case.members).any(|index| {
            let is_linked = self.links.contains_key(&(newcomer, index));
            is_linked && self.nodes[index].host.is_complete()
        });
        self.crash(newcomer)?;
        self.start(newcomer);
        self.heal()?;
        self.elect(leader)?;
        self.agree()?;
        match can_provide && !self.nodes[newcomer].host.is_complete() {
            true => Err("a newcomer lacks what another host has".to_owned()),
            false => Ok(()),
        }
    }

    /// Time passes until all members and their hosts have everything.
    fn agree(&mut self) -> Result<(), String> {
        let within = match self.case.is_calm {
            true => CALM_SETTLES_WITHIN,
            false => SETTLES_WITHIN,
        };
        let until = self.now + within;
        while self.now < until {
            self.deliver_all()?;
            self.take_all()?;
            if self.disagreement().is_none() {
                return match self.case.has_liar {
                    true => Ok(()),
                    false => self.check_hosts(),
                };
            }
            self.now = self.now + Duration::from_millis(50);
            for index in 0..self.case.members {
                self.handle(index, Input::Tick)?;
            }
        }
        Err(format!(
            "{:?} after the healing: {}",
            within,
            self.disagreement().unwrap_or_default()
        ))
    }

    fn elect_for_good(&mut self) -> Result<usize, String> {
        let is_whole = |index: &usize| {
            let replica = self.nodes[*index].replica.as_ref();
            replica.is_some_and(|replica| !replica.is_recovering())
        };
        let whole: Vec<_> = (0..self.case.members).filter(is_whole).collect();
        let leader = match self.case.is_hosted {
            true => HOST,
            // All have lost what they held.
            false if whole.is_empty() => self.any_node(),
            false => whole[self.rng.random_range(0..whole.len())],
        };
        self.elect(leader)?;
        Ok(leader)
    }

    /// All members follow this one from now on.
    pub(crate) fn elect(&mut self, leader: usize) -> Result<(), String> {
        let leader = Some(self.member(leader));
        for index in 0..self.case.members {
            self.handle(index, Input::Leader(leader.clone()))?;
        }
        Ok(())
    }

    /// One member follows this one from now on.
    #[cfg(test)]
    pub(crate) fn shows_leader(&mut self, index: usize, leader: usize) -> Result<(), String> {
        let leader = Some(self.member(leader));
        self.handle(index, Input::Leader(leader))
    }

    pub(crate) fn deliver_all(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            for index in 0..self.case.members {
                self.flush(index)?;
            }
            let waiting = self.links.iter().filter(|(_, frames)| !frames.is_empty());
            let waiting: Vec<_> = waiting.map(|(ends, _)| *ends).collect();
            if waiting.is_empty() {
                return Ok(());
            }
            for (from, to) in waiting {
                self.deliver(from, to)?;
            }
        }
        Err("frames never end".to_owned())
    }

    /// The members' logs, if they differ.
    fn disagreement(&self) -> Option<String> {
        let replicas: Vec<_> = self
            .nodes
            .iter()
            .filter_map(|node| node.replica.as_ref())
            .collect();
        let shown = |replica: &Replica| {
            format!(
                "{} has {:?} to {:?}, confirmed {}, taken {}, {} open, roster {:?}",
                replica.me().peer,
                replica.history(),
                replica.tables().last(),
                replica.confirmed(),
                replica.taken(),
                replica.open_requests(),
                replica
                    .roster()
                    .iter()
                    .map(|member| (&member.peer, member.incarnation.random))
                    .collect::<Vec<_>>(),
            )
        };
        let first = replicas[0];
        // Members that a liar fed may keep forged entries, under the same places.
        let all_equal = replicas.iter().all(|replica| match self.case.has_liar {
            true => replica.tables().last() == first.tables().last(),
            false => replica.tables() == first.tables(),
        });
        let all_confirmed = replicas
            .iter()
            .all(|replica| replica.confirmed() == replica.index());
        let is_done = |replica: &&Replica| replica.open_requests() == 0 || self.case.has_liar;
        let all_done = replicas.iter().all(is_done);
        let all_count = self.case.is_static || first.roster().len() == self.case.members;
        let all_taken = replicas
            .iter()
            .all(|replica| replica.seen().last() == replica.tables().last());
        // Logs may be equal before the leader has opened.
        let leads = replicas.iter().find_map(|replica| replica.leads());
        let is_led = |replica: &&Replica| leads.is_some() && replica.adopted() == leads;
        let all_led = replicas.iter().all(is_led);
        match all_equal && all_confirmed && all_done && all_count && all_taken && all_led {
            true => None,
            false => Some(
                replicas
                    .into_iter()
                    .map(shown)
                    .collect::<Vec<_>>()
                    .join("; "),
            ),
        }
    }
}
