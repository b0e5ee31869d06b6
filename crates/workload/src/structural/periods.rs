//! Connections of one user that wait for each other: the busy periods of a session.
//!
//! A wait ends when nothing is under way. But what is under way may take for ever: on a path that is down, or where the
//! trace only seemed to show that one waits for the other. So nothing waits longer than [`Structural::bound`].

use swell_base::{Dur, Time};
use swell_traffic::Wait;

use super::script::NEXT_TURN;
use super::{HELD, OPEN, SCRIPT, Structural};
use crate::{Action, Conn};

/// Nothing waits longer than this, or than this many times as long as in the trace. Programs give up, and users do something
/// else.
const LONGEST: Dur = Dur::from_secs(60);
const TIMES: f64 = 10.0;

/// The busy periods of a session in progress, and what waits for the next.
#[derive(Debug, Default)]
pub(super) struct Periods {
    /// Number of connections under way, with those that a period has released.
    busy: u32,
    /// The latest period, and when it began.
    latest: (u32, Time),
    /// What waits for later ones.
    waiting: Vec<Held>,
    /// Whether a period has released the opening of a connection that is not open yet; it counts as under way.
    opening: bool,
}

impl Periods {
    /// Whether anything needs them.
    pub(super) fn needed(&self) -> bool {
        self.busy > 0 || !self.waiting.is_empty()
    }

    fn await_opening(&mut self) {
        if !std::mem::replace(&mut self.opening, true) {
            self.busy = self.busy.saturating_add(1);
        }
    }
}

/// Who waits for a period, the pause since its beginning, and how long at most.
#[derive(Clone, Copy, Debug)]
struct Held {
    page: u32,
    pause: Dur,
    who: Waiting,
    until: Time,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Waiting {
    /// The next connection of the group, which is to be opened.
    Opening,
    /// The next turn of a connection.
    Turn(Conn),
}

/// The next turn of `conn` begins after `pause`.
pub(super) fn next_turn(conn: Conn, pause: Dur) -> Action {
    Action::Timer(
        pause,
        SCRIPT | u64::from(NEXT_TURN) << 48 | u64::from(conn.0),
    )
}

impl Structural {
    /// How long something waits at most that paused for `recorded` in the trace.
    fn bound(recorded: Dur) -> Dur {
        LONGEST.max(recorded.scale(TIMES))
    }

    /// Waits for a period. If it has begun, returns the rest of the pause instead. `recorded`: the pause in the trace, the
    /// wait included.
    pub(super) fn wait(
        &mut self,
        v: u32,
        wait: Wait,
        recorded: Dur,
        (who, now): (Waiting, Time),
        actions: &mut Vec<Action>,
    ) -> Option<Dur> {
        let Wait { page, pause, .. } = wait;
        // The session may be over while connections go on. They then wait for themselves.
        let Some(visit) = self.visits.get_mut(v) else {
            return Some(pause);
        };
        let (latest, began) = visit.periods.latest;
        if page <= latest {
            if who == Waiting::Opening {
                visit.periods.await_opening();
            }
            return Some((began + pause).since(now));
        }
        let most = Self::bound(recorded.max(pause));
        visit.periods.waiting.push(Held {
            page,
            pause,
            who,
            until: now + most,
        });
        actions.push(Action::Timer(most, HELD | u64::from(v)));
        None
    }

    /// A connection with waits opens, as the first of its group maybe: its period begins at the latest now.
    pub(super) fn begin_period(&mut self, v: u32, page: u32, now: Time) {
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        let periods = &mut visit.periods;
        if periods.latest.0 < page {
            periods.latest = (page, now);
        }
        if std::mem::take(&mut periods.opening) {
            periods.busy = periods.busy.saturating_sub(1);
        }
    }

    /// Notes whether others wait for `conn`.
    pub(super) fn busy(&mut self, conn: Conn, busy: bool) {
        let Some(live) = self.flows.get_mut(conn.0) else {
            return;
        };
        if std::mem::replace(&mut live.busy, busy) == busy {
            return;
        }
        let v = live.visit;
        if let Some(visit) = self.visits.get_mut(v) {
            let count = &mut visit.periods.busy;
            *count = match busy {
                true => count.saturating_add(1),
                false => count.saturating_sub(1),
            };
        }
    }

    /// A connection that is gone waits for nothing.
    pub(super) fn leave(&mut self, v: u32, conn: Conn) {
        if let Some(visit) = self.visits.get_mut(v) {
            let waiting = &mut visit.periods.waiting;
            waiting.retain(|w| w.who != Waiting::Turn(conn));
        }
    }

    /// If nothing is under way, the next period begins for which anything waits.
    pub(super) fn release(&mut self, v: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        let periods = &mut visit.periods;
        if periods.busy > 0 {
            return;
        }
        let Some(page) = periods.waiting.iter().map(|w| w.page).min() else {
            return;
        };
        periods.latest = (page, now);
        let (due, later) = (periods.waiting.drain(..)).partition(|w| w.page == page);
        periods.waiting = later;
        self.go_on(v, due, actions);
    }

    /// Who has waited too long goes on, whatever is under way.
    pub(super) fn give_up(&mut self, v: u32, now: Time, actions: &mut Vec<Action>) {
        let Some(visit) = self.visits.get_mut(v) else {
            return;
        };
        let periods = &mut visit.periods;
        let (due, later): (Vec<Held>, Vec<Held>) =
            (periods.waiting.drain(..)).partition(|w| w.until <= now);
        periods.waiting = later;
        let at_once = due.into_iter().map(|w| Held {
            pause: Dur::ZERO,
            ..w
        });
        self.go_on(v, at_once.collect(), actions);
    }

    fn go_on(&mut self, v: u32, due: Vec<Held>, actions: &mut Vec<Action>) {
        if due.iter().any(|w| w.who == Waiting::Opening)
            && let Some(visit) = self.visits.get_mut(v)
        {
            visit.periods.await_opening();
        }
        for Held { pause, who, .. } in due {
            match who {
                Waiting::Opening => actions.push(Action::Timer(pause, OPEN | u64::from(v))),
                Waiting::Turn(conn) => {
                    actions.push(next_turn(conn, pause));
                    self.busy(conn, true);
                }
            }
        }
    }
}
