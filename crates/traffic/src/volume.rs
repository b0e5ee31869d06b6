//! How much a model holds.

use swell_base::Dur;

use crate::{Connection, Exchange, Model, Session, Unit};

impl Exchange {
    /// Application bytes from the client and from the server.
    pub fn bytes(&self) -> [u64; 2] {
        match self {
            Exchange::Sequential(turns) => turns.iter().fold([0, 0], |[up, down], t| {
                [
                    up.saturating_add(t.request),
                    down.saturating_add(t.response),
                ]
            }),
            Exchange::Concurrent { up, down } => {
                let sum = |c: &[Unit]| c.iter().fold(0u64, |s, u| s.saturating_add(u.bytes));
                [sum(up), sum(down)]
            }
            Exchange::Attempt { .. } => [0, 0],
            Exchange::Datagrams(d) => d.bytes(),
        }
    }

    /// How many turns, chunks, SYNs or datagrams the model keeps of it: what its size in memory
    /// and in the file grows with.
    pub fn items(&self) -> usize {
        match self {
            Exchange::Sequential(turns) => turns.len(),
            Exchange::Concurrent { up, down } => up.len() + down.len(),
            Exchange::Attempt { retries, .. } => retries.len(),
            // A run takes twice the room of a packet.
            Exchange::Datagrams(d) => {
                d.packets.len() + 2 * d.runs.iter().map(Vec::len).sum::<usize>()
            }
        }
    }

    /// Units of the client and of the server: turns (requests and responses), units of chains, SYNs,
    /// datagrams.
    pub fn units(&self) -> [usize; 2] {
        match self {
            Exchange::Sequential(turns) => [turns.len(); 2],
            Exchange::Concurrent { up, down } => [up.len(), down.len()],
            Exchange::Attempt { retries, .. } => [retries.len() + 1, 0],
            Exchange::Datagrams(d) => d.count().map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        }
    }

    /// The pauses inside it: what it lasts at least, over a network that takes no time.
    pub fn pauses(&self) -> Dur {
        match self {
            Exchange::Sequential(turns) => {
                turns.iter().map(|t| t.server_think + t.client_think).sum()
            }
            Exchange::Concurrent { up, down } => {
                let sum = |c: &[Unit]| c.iter().map(|u| u.pause).sum::<Dur>();
                sum(up).max(sum(down))
            }
            Exchange::Attempt { retries, .. } => retries.iter().copied().sum(),
            Exchange::Datagrams(d) => d.lasts(),
        }
    }
}

impl Connection {
    /// The pauses inside it that the session's next group waited for: all of them, unless it went on
    /// beside that group.
    pub fn awaited(&self) -> Dur {
        let Some([up, down]) = self.overlap.map(|o| o.map(|n| n as usize)) else {
            return self.exchange.pauses();
        };
        match &self.exchange {
            Exchange::Sequential(turns) => {
                let server = turns.iter().take(down).map(|t| t.server_think).sum::<Dur>();
                let asked = up.max(down).saturating_sub(1);
                let client = turns
                    .iter()
                    .take(asked)
                    .map(|t| t.client_think)
                    .sum::<Dur>();
                server + client
            }
            Exchange::Concurrent {
                up: ups,
                down: downs,
            } => {
                let sum = |c: &[Unit], n| c.iter().take(n).map(|u| u.pause).sum::<Dur>();
                sum(ups, up).max(sum(downs, down))
            }
            Exchange::Attempt { retries, .. } => {
                retries.iter().take(up.saturating_sub(1)).copied().sum()
            }
            Exchange::Datagrams(d) => d.iter().take(up + down).map(|p| p.0).sum(),
        }
    }
}

impl Session {
    /// Its connections, in order.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.groups.iter().flat_map(|g| &g.connections)
    }

    /// Application bytes from the client and from the servers.
    pub fn bytes(&self) -> [u64; 2] {
        self.connections().fold([0, 0], |[up, down], c| {
            let [u, d] = c.exchange.bytes();
            [up.saturating_add(u), down.saturating_add(d)]
        })
    }

    /// Items kept of it ([`Exchange::items`] and writes), one more for each connection.
    pub fn items(&self) -> usize {
        let writes = |c: &Connection| c.writes.iter().map(Vec::len).sum::<usize>();
        self.connections()
            .map(|c| c.exchange.items() + writes(c) + 1)
            .sum()
    }

    /// When half of its bytes were asked for, since its start, over a network that takes no time:
    /// the connection at which the running sum of bytes passes the half.
    pub fn half_time(&self) -> Dur {
        let [up, down] = self.bytes();
        let total = up.saturating_add(down);
        let mut done = 0u64;
        let mut at = Dur::ZERO;
        for g in &self.groups {
            at += g.think;
            let mut start = at;
            let mut end = at;
            for c in &g.connections {
                start += c.gap;
                end = end.max(start + c.awaited());
                let [u, d] = c.exchange.bytes();
                done = done.saturating_add(u).saturating_add(d);
                if done >= total / 2 {
                    return start;
                }
            }
            at = end;
        }
        at
    }
}

impl Model {
    /// A warm-up after which a drawn schedule carries the model's load: the 90th percentile, by
    /// bytes, of the time from a session's start to the middle of its volume. A schedule starts
    /// with an empty link; before this time the load is too low.
    pub fn warm_up(&self) -> Dur {
        let mut by_time: Vec<(Dur, f64)> = self
            .sessions
            .iter()
            .map(|s| {
                let [up, down] = s.bytes();
                (s.half_time(), s.weight * (up as f64 + down as f64))
            })
            .collect();
        by_time.sort_by_key(|x| x.0);
        let total: f64 = by_time.iter().map(|x| x.1).sum();
        let mut sum = 0.0;
        for (at, bytes) in by_time {
            sum += bytes;
            if sum >= 0.9 * total {
                return at;
            }
        }
        Dur::ZERO
    }
}
