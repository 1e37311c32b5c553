//! The room's time: it goes back at no member. `tests::room_time` checks that members agree.

use super::World;

impl World {
    /// Checks a member's time after an input: it is not before the one that the member showed until then.
    pub(super) fn check_room_time(&mut self, slot: usize) {
        let now = self.now;
        let Some(process) = &mut self.slots[slot].process else {
            return;
        };
        let (line, local) = (process.node.room_time(), process.clock.local(now));
        let before = process.room_time.replace(line).map(|line| line.at(local));
        let after = line.at(local);
        if let Some(before) = before.filter(|before| after < *before) {
            let text = format!("{}: {before} us, then {after} us", self.slots[slot].id);
            self.violate("room time", text);
        }
    }

    /// The time of a member in microseconds, and its error.
    #[cfg(test)]
    pub(crate) fn room_time(
        &self,
        slot: usize,
    ) -> Option<(u64, Option<room_core::time::Duration>)> {
        let process = self.slots[slot].process.as_ref()?;
        let local = process.clock.local(self.now);
        let line = process.node.room_time();
        Some((line.at(local), line.error(local)))
    }
}
