//! The end of the pass: assembles the model.

use swell_base::Dur;
use swell_traffic::{Class, Exchange, Load, MAX_BYTES, Model, Path, Session, Wire};

use crate::chunks::{Line, correct, wait};
use crate::doubts::doubts;
use crate::learner::Learner;
use crate::paths::{Paths, Seen, Taken, whole_micros};
use crate::ports::CLASSES;
use crate::together::Together;
use crate::users::Delays;

/// Most bytes of the sessions in the text of a model. Longer texts than [`MAX_BYTES`] are not read again.
const SESSIONS: usize = MAX_BYTES / 8 * 7;

impl Learner {
    /// Returns the model of all packets seen.
    pub fn finish(mut self) -> Model {
        self.end_fragments();
        if self.previewing {
            self.end_preview();
        }
        // A held-back packet has no successor that could confirm its time.
        if let Some(mut leapt) = self.leapt.take() {
            if self.clock.incredible(leapt.time) {
                leapt.time = self.clock.stamp();
            }
            self.take(&leapt);
        }
        self.counts.clock = self.clock.odd;
        self.counts.tick = self.clock.coarse();
        self.counts.repeated = self.repeats.packets;
        for i in 0..self.table.slots() {
            self.close(i);
        }
        let mut thinner = self.thinner;
        self.users.finish(&mut |s, d| thinner.push_with(s, d));
        self.counts.offered = thinner.offered();
        // Where sessions must not depend on each other, all are kept.
        self.counts.too_long = !self.options.apart && thinner.fit(SESSIONS);
        let (kept, delays_of_kept, thinning) = thinner.finish_with();
        let mut noted: Vec<(Session, Delays)> = kept.into_iter().zip(delays_of_kept).collect();
        noted.sort_by_key(|s| s.0.start);
        let (mut sessions, all_delays): (Vec<Session>, Vec<Delays>) = noted.into_iter().unzip();
        // A trace of one packet has no duration, but a session needs a non-empty interval.
        let duration = self.options.length.as_nanos().max(self.now + 1_000);

        for s in &mut sessions {
            s.outside = !self.hosts.inside(s.client, true);
        }
        let mut paths = Paths::new();
        for s in &mut sessions {
            paths.place(s, &self.hosts);
        }
        self.together
            .iter_mut()
            .flatten()
            .for_each(Together::finish);
        let tap = Seen {
            hosts: &self.hosts,
            passing: &self.passing,
            together: &self.together,
        };
        let [(client_paths, of_clients), (server_paths, of_servers)] =
            paths.finish(&tap, &mut self.counts, &self.options);
        // Pauses were measured with the tapped link's delay and rate in them, so they are corrected with these.
        let seen = |of: &[Path], taken: &[Taken], i: u32| {
            let (path, taken) = (of[i as usize], taken[i as usize]);
            Path {
                rtt: path.rtt + taken.rtt,
                up: path.up.or(taken.up),
                down: path.down.or(taken.down),
                ..path
            }
        };
        for (s, delays) in sessions.iter_mut().zip(all_delays) {
            let client = &seen(&client_paths, &of_clients, s.client);
            let mut turns = delays.turns.into_iter();
            for (g, due) in s.groups.iter_mut().zip(delays.groups) {
                // The user received the last response half a client-side RTT after it passed the tap, or later if it
                // waited in a queue. The next SYN took as long to reach the tap.
                g.think = g.think.saturating_sub(client.rtt.max(wait(due)));
                for c in &mut g.connections {
                    let dues = turns.next().unwrap_or_default();
                    let server = &seen(&server_paths, &of_servers, c.server);
                    let [client, server] = [line(client, &c.wire, 0), line(server, &c.wire, 1)];
                    correct(&mut c.exchange, &dues, &client, &server);
                    for wait in &mut c.waits {
                        wait.pause = wait.pause.saturating_sub(client.rtt);
                    }
                }
            }
        }
        let classes = used_classes(&mut sessions);
        let mut provenance = self.options.provenance;
        if provenance.made_by.is_empty() {
            provenance.made_by = concat!("swell-learn ", env!("CARGO_PKG_VERSION")).into();
        }
        provenance.thinning = thinning;
        let mut model = Model {
            name: self.options.name,
            provenance,
            warnings: Vec::new(),
            duration: Dur::from_nanos(duration),
            parameters: self.options.parameters,
            totals: self.totals,
            load: Load {
                filled: self.counts.filled,
                ..self.bins.finish(self.now)
            },
            classes,
            client_paths,
            server_paths,
            sessions,
        };
        round_times(&mut model);
        let cut = self.users.cut;
        model.warnings = doubts(&model, &self.counts, &self.hosts, cut);
        model.warnings.splice(0..0, self.doubts);
        model
            .warnings
            .sort_by_key(|w| std::cmp::Reverse(w.severity));
        model
    }
}

/// The path parameters at one end of a connection.
fn line(path: &Path, wire: &Wire, end: usize) -> Line {
    let full = |sender: usize| match wire.ends[sender].mss {
        0 => 1448,
        mss => u64::from(mss),
    };
    let timestamps = if wire.timestamps == Some(false) {
        0
    } else {
        12
    };
    Line {
        rtt: path.rtt,
        up: path.up,
        down: path.down,
        sends: full(end),
        gets: full(1 - end),
        headers: if wire.ipv6 { 60 } else { 40 } + timestamps,
    }
}

/// The classes that the sessions use, renumbered.
fn used_classes(sessions: &mut [Session]) -> Vec<Class> {
    let mut number = [None; CLASSES.len()];
    let mut classes = Vec::new();
    for (i, row) in CLASSES.iter().enumerate() {
        if sessions.iter().any(|s| s.class as usize == i) {
            number[i] = Some(classes.len() as u32);
            classes.push(Class {
                name: row.name.into(),
                udp: row.udp,
            });
        }
    }
    for s in sessions {
        s.class = number[s.class as usize].unwrap_or(0);
    }
    classes
}

/// Rounds all times to whole microseconds, the resolution of the file, so that a model in memory equals
/// the same model read back.
fn round_times(m: &mut Model) {
    let round = |d: &mut Dur| *d = whole_micros(*d);
    round(&mut m.duration);
    for s in &mut m.sessions {
        round(&mut s.start);
        s.lasted.iter_mut().for_each(round);
        for g in &mut s.groups {
            round(&mut g.think);
            for c in &mut g.connections {
                round(&mut c.gap);
                c.writes
                    .iter_mut()
                    .flatten()
                    .for_each(|w| round(&mut w.gap));
                c.waits.iter_mut().for_each(|w| round(&mut w.pause));
                match &mut c.exchange {
                    Exchange::Sequential(turns) => {
                        for t in turns {
                            round(&mut t.server_think);
                            round(&mut t.client_think);
                        }
                    }
                    Exchange::Concurrent { up, down } => {
                        up.iter_mut()
                            .chain(down)
                            .for_each(|unit| round(&mut unit.pause));
                    }
                    Exchange::Attempt { retries, .. } => retries.iter_mut().for_each(round),
                    Exchange::Datagrams(d) => {
                        d.packets.iter_mut().for_each(|p| round(&mut p.0));
                        for r in d.runs.iter_mut().flatten() {
                            round(&mut r.pause);
                            round(&mut r.span);
                        }
                    }
                }
            }
        }
    }
}
