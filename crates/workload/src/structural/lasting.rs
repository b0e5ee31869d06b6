//! Sessions that last: one copy after the other, never two at once.

use swell_base::Time;

use super::Structural;
use crate::Action;

impl Structural {
    /// Begins lasting sessions that have not been entered.
    pub(super) fn stay(&mut self, now: Time, actions: &mut Vec<Action>) {
        let due = self.lasts.iter().filter(|(_, chain)| chain.playing == 0);
        let due: Vec<(u32, u32)> = due.map(|(&key, _)| key).collect();
        for (session, copy) in due {
            self.succeed(session, copy, now, now, actions);
        }
    }

    pub(super) fn end_visit(&mut self, v: u32, session: u32, now: Time, actions: &mut Vec<Action>) {
        let copy = self.visits.remove(v).map(|ended| ended.copy);
        let lasting = self.lasting.get(session as usize).copied().flatten();
        if let (Some(lasting), Some(copy)) = (lasting, copy) {
            self.succeed(session, copy, now, now + lasting.rest, actions);
        }
    }

    /// A connection of `visit` is over.
    pub(super) fn over(&mut self, v: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        visit.unfinished = visit.unfinished.saturating_sub(1);
        if visit.ending && visit.unfinished == 0 {
            let session = visit.session;
            self.end_visit(v, session, now, actions);
        }
    }

    /// A copy of a lasting session has ended: the next begins when it is due, but not before `free`.
    pub(super) fn succeed(
        &mut self,
        session: u32,
        copy: u32,
        now: Time,
        free: Time,
        actions: &mut Vec<Action>,
    ) {
        let lasting = self.lasting.get(session as usize).copied().flatten();
        let (Some(chain), Some(lasting)) = (self.lasts.get_mut(&(session, copy)), lasting) else {
            return;
        };
        chain.playing = chain.playing.saturating_sub(1);
        if chain.playing > 0 {
            return;
        }
        let at = chain.next.max(free);
        (chain.playing, chain.next) = (1, at + lasting.cycle);
        self.visit(session, copy, at.since(now), actions);
    }
}
