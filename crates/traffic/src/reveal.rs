//! How much a model reveals about its trace.

use std::collections::BTreeMap;

use crate::{Connection, Exchange, Model, Session};

/// The part of a model that is unique by its sizes alone, in bytes. Anyone who observed such a session
/// elsewhere can recognize it in the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reveals {
    /// Share of sessions whose sequence of sizes occurs only once.
    pub sessions: f64,
    /// The same share for TCP exchanges with data.
    pub exchanges: f64,
}

impl Model {
    /// The unique part of the model. Pauses do not count: at microsecond resolution they are nearly always
    /// unique.
    pub fn reveals(&self) -> Reveals {
        let of = |s: &Session| s.connections().map(sizes).collect::<Vec<_>>();
        let tcp = |c: &&Connection| match &c.exchange {
            Exchange::Sequential(turns) => !turns.is_empty(),
            Exchange::Concurrent { .. } => true,
            _ => false,
        };
        let connections = self.sessions.iter().flat_map(Session::connections);
        Reveals {
            sessions: alone(self.sessions.iter().map(|s| (s.class, of(s)))),
            exchanges: alone(connections.filter(tcp).map(sizes)),
        }
    }
}

/// The bytes of its units, each with the end that sends it.
fn sizes(c: &Connection) -> Vec<(bool, u64)> {
    match &c.exchange {
        Exchange::Sequential(turns) => turns
            .iter()
            .flat_map(|t| [(true, t.request), (false, t.response)])
            .collect(),
        Exchange::Concurrent { up, down } => {
            let of = |client| move |u: &crate::Unit| (client, u.bytes);
            up.iter()
                .map(of(true))
                .chain(down.iter().map(of(false)))
                .collect()
        }
        Exchange::Attempt { retries, .. } => vec![(true, 0); retries.len() + 1],
        Exchange::Datagrams(d) if d.is_whole() => d
            .packets
            .iter()
            .map(|&(_, up, bytes)| (up, u64::from(bytes)))
            .collect(),
        Exchange::Datagrams(d) => {
            let end = |i: usize| d.runs[i].iter().map(move |r| (i == 0, r.bytes));
            end(0).chain(end(1)).collect()
        }
    }
}

/// Share of values that occur once.
fn alone<T: Ord>(values: impl Iterator<Item = T>) -> f64 {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let all: u64 = counts.values().sum();
    let once = counts.values().filter(|&&n| n == 1).count();
    once as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{model, session};
    use swell_base::Dur;

    #[test]
    fn what_comes_once_is_unique() {
        let at = Dur::from_millis;
        let of = |sizes: &[u64]| {
            let sessions = (0..).zip(sizes).map(|(i, &n)| session(0, at(i), n));
            model(Dur::from_secs(10), sessions.collect()).reveals()
        };
        let half = of(&[100, 100, 200, 300]);
        assert_eq!((half.sessions, half.exchanges), (0.5, 0.5));
        // Pauses do not count, classes of sessions do.
        let mut m = model(
            Dur::from_secs(10),
            vec![session(0, at(1), 5), session(1, at(2), 5)],
        );
        assert_eq!(m.reveals().sessions, 1.0);
        assert_eq!(m.reveals().exchanges, 0.0);
        m.sessions.clear();
        assert_eq!(
            m.reveals(),
            Reveals {
                sessions: 0.0,
                exchanges: 0.0
            }
        );
    }
}
