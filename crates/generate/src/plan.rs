//! The traffic that a generator produces.

use std::collections::VecDeque;
use std::sync::Arc;

use swell_base::Time;
use swell_traffic::flowlevel::{Due, Plan as FlowPlan, Player, Share, Transfer};

/// One thread's part of some traffic: events in order of time. Times count from the start of the traffic.
pub trait Traffic: Send {
    /// When [`Traffic::pop`] may next return something. `None` means never, or not before a transfer ends.
    fn poll_at(&self) -> Option<Time>;

    /// The next event that is due at `now` or was due earlier, with its scheduled time.
    fn pop(&mut self, now: Time) -> Option<Due>;

    /// A transfer of a session ended, successfully or not.
    fn ended(&mut self, _session: u64, _now: Time) {}

    /// Number of active sessions.
    fn active(&self) -> u64;

    /// Whether no further event will ever be due.
    fn is_over(&self) -> bool {
        self.poll_at().is_none()
    }

    /// Switches to another plan of a flow-level model, if supported. Returns the factor by which the load grows.
    fn change(&mut self, _plan: &FlowPlan, _now: Time) -> Option<f64> {
        None
    }
}

/// Traffic that is distributed over several threads on several hosts.
pub trait Plan: Send + Sync {
    /// The part of one thread, from `now` on.
    fn part(&self, share: Share, now: Time) -> Box<dyn Traffic>;

    /// Seed of all random choices.
    fn seed(&self) -> u64 {
        0
    }

    /// The plan of a flow-level model, if this is one.
    fn model(&self) -> Option<&FlowPlan> {
        None
    }
}

/// A flow-level model with a seed.
pub struct Model {
    /// The model's plan.
    pub plan: FlowPlan,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Plan for Model {
    fn part(&self, share: Share, now: Time) -> Box<dyn Traffic> {
        Box::new(Player::joining(self.plan.clone(), self.seed, share, now))
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn model(&self) -> Option<&FlowPlan> {
        Some(&self.plan)
    }
}

impl Traffic for Player {
    fn poll_at(&self) -> Option<Time> {
        Player::poll_at(self)
    }

    fn pop(&mut self, now: Time) -> Option<Due> {
        Player::pop(self, now)
    }

    fn active(&self) -> u64 {
        Player::active(self)
    }

    fn change(&mut self, plan: &FlowPlan, now: Time) -> Option<f64> {
        Some(Player::change(self, plan.clone(), now))
    }
}

/// Sessions that repeat the same transfer, each as soon as the previous one has ended. They use all capacity that the
/// network and the hosts offer, in order to measure it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Number of sessions.
    pub sessions: u64,
    /// Bytes to the server.
    pub up: u64,
    /// Bytes to the client.
    pub down: u64,
}

impl Plan for Closed {
    fn part(&self, share: Share, now: Time) -> Box<dyn Traffic> {
        let numbers = 0..self.sessions;
        let own = numbers.filter(|n| n % u64::from(share.of.max(1)) == u64::from(share.index));
        let due: VecDeque<(Time, u64)> = own.map(|session| (now, session)).collect();
        Box::new(ClosedPart {
            plan: *self,
            active: due.len() as u64,
            due,
        })
    }
}

struct ClosedPart {
    plan: Closed,
    active: u64,
    due: VecDeque<(Time, u64)>,
}

impl Traffic for ClosedPart {
    fn poll_at(&self) -> Option<Time> {
        self.due.front().map(|d| d.0)
    }

    fn pop(&mut self, now: Time) -> Option<Due> {
        let (at, session) = *self.due.front().filter(|d| d.0 <= now)?;
        self.due.pop_front();
        Some(Due::Transfer(Transfer {
            at,
            session,
            source: session,
            destination: session,
            up: self.plan.up,
            down: self.plan.down,
            limits: [None; 2],
            kept: true,
        }))
    }

    fn ended(&mut self, session: u64, now: Time) {
        // Sessions whose transfer failed or was withheld have to wait; the others must not wait for them.
        let at = self.due.partition_point(|d| d.0 <= now);
        self.due.insert(at, (now, session));
    }

    fn active(&self) -> u64 {
        self.active
    }

    fn is_over(&self) -> bool {
        self.active == 0
    }
}

/// A plan that threads share.
pub type SharedPlan = Arc<dyn Plan>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_waits_keeps_no_other_waiting() {
        let closed = Closed {
            sessions: 3,
            up: 1,
            down: 1,
        };
        let mut part = closed.part(Share::ALL, Time::ZERO);
        let now = Time::from_secs_f64(1.0);
        let mut next = |at| match part.pop(at) {
            Some(Due::Transfer(t)) => Some(t.session),
            _ => None,
        };
        assert_eq!(
            [next(now), next(now), next(now)],
            [Some(0), Some(1), Some(2)]
        );
        let later = Time::from_secs_f64(1.1);
        part.ended(0, later);
        part.ended(1, now);
        part.ended(2, now);
        let mut order = Vec::new();
        while let Some(Due::Transfer(t)) = part.pop(later) {
            order.push((t.at, t.session));
        }
        assert_eq!(order, [(now, 1), (now, 2), (later, 0)]);
    }
}
