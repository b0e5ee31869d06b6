//! Sources with a separate schedule each.

use swell_base::{Rate, Time, derived};

use crate::{
    Action, Conn, Event, Info, Parametric, ParametricConfig, Record, TimedWrite, Workload,
};

/// Several parametric workloads as one. Source `i` draws from its own streams, under the seed `derived(seed, i)`.
///
/// A [`Parametric`] has one schedule for all its sources, which take turns. Here each source has its own schedule, so
/// sources are independent of each other, as the clients in published scenarios are.
#[derive(Debug)]
pub struct Sources {
    each: Vec<Parametric>,
}

/// Connections per source: one for each direction.
const CONNS: u32 = 2;
/// Timers per source: one for each direction.
const TIMERS: u64 = 2;

impl Sources {
    /// As many sources as `config` requests. They share the rates evenly, to within a bit per second, and all of them
    /// together have exactly these rates. `first` is the number of the first source among all sources of a run.
    pub fn new(config: &ParametricConfig, first: u32, seed: u64) -> Sources {
        let count = u64::from(config.sources.max(1));
        let share = |rate: Rate, i: u64| {
            let (least, rest) = (rate.bps() / count, rate.bps() % count);
            Rate::from_bps(least + u64::from(i < rest))
        };
        let new = |i: u32| {
            let own = u64::from(i);
            let one = ParametricConfig {
                sources: 1,
                rate: config.rate.map(|rate| share(rate, own)),
                ..config.clone()
            };
            Parametric::new(one, derived(seed, u64::from(first) + own))
        };
        Sources {
            each: (0..config.sources).map(new).collect(),
        }
    }
}

/// The common number of connection `conn` of source `i`.
fn common(i: usize, conn: Conn) -> Conn {
    Conn(i as u32 * CONNS + conn.0)
}

impl Workload for Sources {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        let mut own = Vec::new();
        match event {
            Event::Start => {
                for (i, machine) in self.each.iter_mut().enumerate() {
                    machine.handle(now, Event::Start, &mut own);
                    actions.extend(own.drain(..).map(|a| renamed(i, a)));
                }
            }
            Event::Timer(token) => {
                let i = (token / TIMERS) as usize;
                if let Some(machine) = self.each.get_mut(i) {
                    machine.handle(now, Event::Timer(token % TIMERS), &mut own);
                    actions.extend(own.drain(..).map(|a| renamed(i, a)));
                }
            }
            // A source does not react to other events.
            _ => {}
        }
    }

    #[inline]
    fn timed_write(&mut self, token: u64) -> Option<TimedWrite> {
        let i = (token / TIMERS) as usize;
        let write = self.each.get_mut(i)?.timed_write(token % TIMERS)?;
        Some(TimedWrite {
            conn: common(i, write.conn),
            ..write
        })
    }

    fn timed_writes(&mut self, token: u64, due: &mut Time, now: Time, most: u32) -> (u64, u32) {
        let machine = self.each.get_mut((token / TIMERS) as usize);
        machine.map_or((0, 0), |m| m.timed_writes(token % TIMERS, due, now, most))
    }

    fn about(&self, token: u64) -> Option<Conn> {
        let i = (token / TIMERS) as usize;
        let conn = self.each.get(i)?.about(token % TIMERS)?;
        Some(common(i, conn))
    }

    fn take_records(&mut self) -> Vec<Record> {
        let each = self.each.iter_mut();
        each.flat_map(Workload::take_records).collect()
    }

    fn finish(&mut self, info: &dyn Fn(Conn) -> Info) {
        for (i, machine) in self.each.iter_mut().enumerate() {
            machine.finish(&|conn| info(common(i, conn)));
        }
    }
}

fn renamed(i: usize, action: Action) -> Action {
    match action {
        Action::Connect(conn, open) => Action::Connect(common(i, conn), open),
        Action::Datagrams(conn, open) => Action::Datagrams(common(i, conn), open),
        Action::Send(conn, end, n) => Action::Send(common(i, conn), end, n),
        Action::SendDatagram(conn, end, n) => Action::SendDatagram(common(i, conn), end, n),
        Action::Close(conn, end) => Action::Close(common(i, conn), end),
        Action::Abort(conn) => Action::Abort(common(i, conn)),
        Action::Ask(conn) => Action::Ask(common(i, conn)),
        Action::Unsent(conn, end) => Action::Unsent(common(i, conn), end),
        Action::Timer(after, token) => Action::Timer(after, i as u64 * TIMERS + token),
    }
}

#[cfg(test)]
mod tests {
    use swell_base::Dur;

    use super::*;
    use crate::{Access, Law, Transport};

    fn config(sources: u32) -> ParametricConfig {
        ParametricConfig {
            law: Law::Poisson,
            transport: Transport::Tcp,
            packet: 1500,
            rate: [Rate::from_bps(3_600_000), Rate::from_bps(0)],
            sources,
            left: Access::default(),
            right: Access::default(),
        }
    }

    /// When each source submits packets, up to an instant.
    fn submitted(machine: &mut dyn Workload, until: Time) -> Vec<(Time, Conn)> {
        let mut timers: Vec<(Time, u64)> = Vec::new();
        let mut out = Vec::new();
        let (mut now, mut event) = (Time::ZERO, Event::Start);
        loop {
            let mut actions = Vec::new();
            machine.handle(now, event, &mut actions);
            for action in actions {
                match action {
                    Action::Timer(after, token) => timers.push((now + after, token)),
                    Action::Send(conn, ..) => out.push((now, conn)),
                    _ => {}
                }
            }
            timers.sort();
            let (at, token) = timers.remove(0);
            if at > until {
                return out;
            }
            (now, event) = (at, Event::Timer(token));
        }
    }

    #[test]
    fn each_source_does_what_it_would_do_alone() {
        let until = Time::ZERO + Dur::from_secs(5);
        let together = submitted(&mut Sources::new(&config(3), 4, 9), until);
        for i in 0..3 {
            let alone = ParametricConfig {
                rate: [Rate::from_bps(1_200_000), Rate::from_bps(0)],
                ..config(1)
            };
            let mut machine = Parametric::new(alone, derived(9, 4 + i));
            let expected: Vec<Time> = submitted(&mut machine, until).iter().map(|s| s.0).collect();
            let mine = together
                .iter()
                .filter(|(_, conn)| u64::from(conn.0 / CONNS) == i);
            let mine: Vec<Time> = mine.map(|s| s.0).collect();
            assert!(mine.len() > 300, "{} packets", mine.len());
            assert_eq!(mine, expected, "source {i}");
        }
    }

    /// Rates that cannot be divided evenly.
    #[test]
    fn the_rates_of_the_sources_add_up() {
        for (sources, rate) in [(7, [1_000_000, 0]), (6, [3, 8])] {
            let whole = ParametricConfig {
                rate: rate.map(Rate::from_bps),
                ..config(sources)
            };
            let each = Sources::new(&whole, 0, 1).each;
            for (way, &sum) in rate.iter().enumerate() {
                let own: Vec<u64> = each.iter().map(|s| s.rates()[way].bps()).collect();
                assert_eq!(own.iter().sum::<u64>(), sum, "{own:?}");
                let (least, most) = (own.iter().min(), own.iter().max());
                assert!(most.copied() <= least.map(|r| r + 1), "{own:?}");
            }
        }
    }
}
