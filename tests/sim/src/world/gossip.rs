//! Checks after every input of a node that elects by gossip.

use room_core::election::gossip::Gossip;
use room_core::election::{ElectionError, Entry};
use room_core::node::{CommandError, Event, LeaderChange, Output};

use super::{World, members_shown, reports_members};
use crate::checks::gossip::GossipSeen;
use crate::decoded;
use crate::gossip::{Cause, Glance};

impl World {
    pub(crate) fn check_gossip(
        &mut self,
        slot: usize,
        before: &Glance,
        outputs: &[Output],
        result: &Result<(), CommandError>,
    ) {
        self.count_gossip(slot, before, outputs);
        if let Some(text) = self.not_refused(slot, before, outputs, result) {
            self.violate("refused", text);
        }
        let Some(process) = &self.slots[slot].process else {
            return;
        };
        let node = &process.node;
        let Some(gossip) = node.election().of::<Gossip>() else {
            return;
        };
        let machine = gossip.peer().machine();
        let membership = node.membership();
        let local = process.clock.local(self.now);
        let changed = outputs.iter().any(reports_members) || process.inputs.is_multiple_of(64);
        let leader = node.leader();
        let seen = GossipSeen {
            leader,
            leads: node.is_leader(),
            machine_leads: machine.is_leader(),
            election_is_over: before.election_ends.is_some_and(|at| at <= local),
            may_lead: process.eligible,
            may_propose: process.auto,
            is_host: self.settings.host == Some(slot) || self.slots[slot].entry == Entry::Create,
            yields: node.yielded_at() == Some(local),
            leader_may_lead: leader.and_then(|leader| process.may_lead.get(leader)) == Some(&true),
            over: node.is_over() || machine.is_stopped(),
            remembered: gossip.peer().remembered(),
            members: changed.then(|| members_shown(&process.node)),
            members_count: membership.len() + process.node.ended_peers().count(),
        };
        if let Err(violation) = self
            .checker
            .observe_gossip(slot, &before.cause, outputs, &seen)
        {
            self.violate(violation.property, violation.text);
        }
    }

    /// Requests that need votes are refused, and change nothing.
    fn not_refused(
        &self,
        slot: usize,
        before: &Glance,
        outputs: &[Output],
        result: &Result<(), CommandError>,
    ) -> Option<String> {
        let all = before.all.as_ref()?;
        let place = &self.slots[slot];
        let node = &place.process.as_ref()?.node;
        let refused = CommandError::Election(ElectionError::NotSupported { strategy: "gossip" });
        let rightly = *result == Err(refused) || (before.over && result.is_err());
        let same = *all == Glance::all(node, node.election().of::<Gossip>()?) && outputs.is_empty();
        (!rightly || !same).then(|| {
            format!(
                "{} answered {result:?} and gave {outputs:?}{}",
                place.id,
                if same { "" } else { "; it is not as before" }
            )
        })
    }

    fn count_gossip(&mut self, slot: usize, before: &Glance, outputs: &[Output]) {
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        let node = &process.node;
        let Some(gossip) = node.election().of::<Gossip>() else {
            return;
        };
        let machine = gossip.peer().machine();
        let counts = &mut self.gossip;
        let (mut proposes, mut declares) = (0, 0);
        for output in outputs {
            if let Output::Transmit { envelope, .. } = output
                && let Some(claimed) = decoded::claimed(&envelope.message)
            {
                *(if claimed.declares {
                    &mut declares
                } else {
                    &mut proposes
                }) += 1;
            }
        }
        counts.proposals += proposes;
        counts.declarations += declares;
        let (electing, leads) = (machine.is_electing(), node.is_leader());
        let was_electing = before.election_ends.is_some();
        let began = electing && !was_electing;
        let found = before.leader.is_none() && node.leader().is_some();
        if (began || found) && !std::mem::replace(&mut process.started_up, true) {
            let since = process
                .clock
                .local(self.now)
                .since(process.clock.local(process.born_at));
            let sample = machine.windows().sample_interval;
            counts.startups_with_a_leader += u64::from(!began);
            counts.startups_in_one_sample += u64::from(began && since < sample * 3 / 2);
            counts.startups_resampled += u64::from(began && since >= sample * 3 / 2);
        }
        let over = was_electing && !electing;
        match &before.cause {
            Cause::Tick if over => {
                counts.elections_won += u64::from(leads);
                let may = process.auto && process.eligible && !before.yielding;
                counts.elections_outbid += u64::from(!leads && may);
            }
            Cause::Declared(_) if over => counts.elections_ended_by_a_leader += 1,
            Cause::Declared(_) if before.leads && !leads => counts.leaders_made_way += 1,
            Cause::Declared(_) if before.leads && declares > 0 => counts.leaders_answered += 1,
            Cause::Linked => counts.new_links_of_leaders += u64::from(declares > 0),
            Cause::Proposed(_) => counts.strict_joins += u64::from(began),
            Cause::Yield => counts.yields += u64::from(before.leads && !leads),
            Cause::Ineligible => {
                counts.leaders_made_ineligible += u64::from(before.leads && !leads);
            }
            Cause::Foreign => counts.refusals += 1,
            _ => {}
        }
        if before.yielding && !machine.is_yielding() {
            let led = node.leader().is_some();
            counts.yields_ended_by_a_leader += u64::from(led);
            counts.yields_expired += u64::from(!led);
        }
        let shown_again = |output: &Output| {
            let Output::Event(Event::LeaderChanged(LeaderChange {
                new: Some(leader), ..
            })) = output
            else {
                return false;
            };
            let linked = |first| node.membership().get(first).is_some() && first != leader;
            before.leader.as_ref().is_some_and(linked)
        };
        counts.leaders_shown_in_turn += u64::from(outputs.iter().any(shown_again));
    }
}

#[cfg(test)]
mod tests {
    use room_core::node::{Command, Input};
    use room_core::time::Duration;
    use room_core::wire::Strategy;

    use super::*;
    use crate::trace::Trace;
    use crate::world::Settings;

    /// The kind of a host's refused request, from the answer that the world received.
    fn asked(answer: &Result<(), CommandError>, changed: bool) -> Option<&'static str> {
        let settings = Settings {
            strategy: Strategy::Gossip {
                strict_lowest: true,
            },
            ..Settings::default()
        };
        let mut world = World::new(1, 1, settings, Trace::off());
        world.start(0);
        world.run_for(Duration::from_secs(10));
        let node = world.node(0).expect("it runs");
        let input = Input::Command(Command::SetPriority(7));
        let mut before = Glance::before(node, Some(&input)).expect("it elects by gossip");
        if changed {
            before.all = before.all.map(|all| all + "?");
        }
        world.check_gossip(0, &before, &[], answer);
        world.violation.map(|violation| violation.property)
    }

    #[test]
    fn an_order_that_only_votes_can_carry_out_must_be_refused_and_change_nothing() {
        let refused = CommandError::Election(ElectionError::NotSupported { strategy: "gossip" });
        assert_eq!(asked(&Err(refused.clone()), false), None);
        assert_eq!(asked(&Err(refused), true), Some("refused"));
        assert_eq!(asked(&Ok(()), false), Some("refused"));
        assert_eq!(asked(&Err(CommandError::NotLeader), false), Some("refused"));
    }
}
