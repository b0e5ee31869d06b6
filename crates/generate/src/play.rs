//! Plays the traffic of one thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use swell_base::{Dur, Time};
use swell_traffic::flowlevel::{Due, Transfer};

use super::flow::Outcome;
use super::plan::SharedPlan;
use super::playing::Playing;
use super::worker::Worker;

/// Delay after a transfer failed or was withheld, before its session tries again. It applies to sessions that wait
/// for the end of their transfers.
const WITHHELD: Dur = Dur::from_millis(100);
/// Most events that are played before the load changes.
const ENTERED: usize = 100_000;

impl Worker {
    /// Switches to other traffic, at once or when the traffic starts. Running datagram sources end.
    pub fn set_plan(&mut self, plan: &SharedPlan) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        playing.client.plan = Arc::clone(plan);
        let running = playing.sources.tokens(|s| s.goes_on());
        if self.shared.begun().is_some() {
            self.begin_plan();
            for token in running {
                self.source_over(token);
            }
        }
    }

    /// Changes the load: `plan` is of the same model.
    pub fn set_load(&mut self, plan: &SharedPlan) {
        let Some(begun) = self.shared.begun() else {
            return self.set_plan(plan);
        };
        // Sources that a part enters in their middle are due at once, and would be lost with the old load. This is bounded,
        // because traffic that is more than this thread can play is always due.
        for _ in 0..ENTERED {
            if !self.play(1) {
                break;
            }
        }
        let now = Time::ZERO + self.now().since(begun);
        let Some(playing) = &mut self.playing else {
            return;
        };
        let growth = plan.model().and_then(|model| {
            let traffic = playing.traffic.as_mut();
            traffic.and_then(|t| t.change(model, now))
        });
        let Some(growth) = growth else {
            return self.set_plan(plan);
        };
        playing.client.plan = Arc::clone(plan);
        self.unplayed();
        self.scale_sources(growth, now, begun);
    }

    /// Starts the traffic, unless a plan has started it.
    pub fn start(&mut self) {
        if self.playing.as_ref().is_some_and(|p| p.traffic.is_none()) {
            self.begin_plan();
        }
    }

    fn unplayed(&self) {
        self.shared.played[usize::from(self.number)].store(false, Ordering::Release);
    }

    /// Begins the current plan.
    fn begin_plan(&mut self) {
        let Some(begun) = self.shared.begun() else {
            return;
        };
        let now = Time::ZERO + self.now().since(begun);
        let threads = self.shared.config.threads;
        let number = self.number;
        self.unplayed();
        let Some(playing) = &mut self.playing else {
            return;
        };
        let share = playing.share(number, threads);
        let Playing {
            client, traffic, ..
        } = playing;
        // Initial traffic starts at time zero even if this thread starts slightly later.
        let now = match traffic {
            None if !self.shared.joins_late() => Time::ZERO,
            _ => now,
        };
        *traffic = Some(client.plan.part(share, now));
        playing.generation = playing.generation.wrapping_add(1);
    }

    /// Ends all datagram sources, and closes kept connections.
    pub fn end_play(&mut self) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        playing.traffic = None;
        let kept = std::mem::take(&mut playing.idle);
        let sources = playing.sources.tokens(|_| true);
        for token in kept.into_values() {
            self.forget(token);
        }
        for token in sources {
            self.source_over(token);
        }
    }

    /// When the next event is due, on the clock of the run.
    pub fn next_due(&self) -> Option<Time> {
        let at = self.playing.as_ref()?.traffic.as_ref()?.poll_at()?;
        Some(self.shared.begun()? + at.since(Time::ZERO))
    }

    /// Starts the events that are due, at most `most`; true if some are left.
    pub fn play(&mut self, most: usize) -> bool {
        let Some(begun) = self.shared.begun() else {
            return false;
        };
        for _ in 0..most {
            let now = Time::ZERO + self.now().since(begun);
            let traffic = self.playing.as_mut().and_then(|p| p.traffic.as_mut());
            match traffic.and_then(|t| t.pop(now)) {
                Some(Due::Transfer(transfer)) => self.transfer_due(&transfer),
                Some(Due::Datagrams(source)) => self.source_begins(&source, begun, 0),
                None => {
                    self.perhaps_played();
                    return false;
                }
            }
        }
        true
    }

    fn transfer_due(&mut self, due: &Transfer) {
        let Some(playing) = &mut self.playing else {
            return;
        };
        let ends = playing.ends(due.source, due.destination);
        let now = Time::from_nanos(self.since_begun());
        if self.shared.is_here(ends.server) {
            self.lateness.add(now.since(due.at));
            self.transfer(due, ends);
            return;
        }
        self.counts.withheld += 1;
        let traffic = self.playing.as_mut().and_then(|p| p.traffic.as_mut());
        if let Some(traffic) = traffic {
            traffic.ended(due.session, now + WITHHELD);
        }
    }

    /// Nanoseconds since the traffic began.
    pub fn since_begun(&self) -> u64 {
        let begun = self.shared.begun().unwrap_or(Time::ZERO);
        self.now().since(begun).as_nanos()
    }

    /// A transfer ended; its session may have waited for it.
    pub fn transfer_over(&mut self, session: u64, generation: u32, outcome: Outcome) {
        let mut now = Time::from_nanos(self.since_begun());
        if outcome == Outcome::Failed {
            // The delay prevents a busy loop of immediate failures.
            now += WITHHELD;
        }
        if let Some(playing) = &mut self.playing {
            playing.under_way = playing.under_way.saturating_sub(1);
            let own = playing.generation == generation;
            if let Some(traffic) = playing.traffic.as_mut().filter(|_| own) {
                traffic.ended(session, now);
            }
        }
        self.perhaps_played();
    }

    /// Reports it if the traffic is over.
    pub fn perhaps_played(&mut self) {
        let over = self.playing.as_ref().is_some_and(|p| {
            let over = p.traffic.as_ref().is_some_and(|t| t.is_over());
            over && p.under_way == 0 && p.sources.len() == 0
        });
        if over {
            self.shared.played[usize::from(self.number)].store(true, Ordering::Release);
        }
    }
}
