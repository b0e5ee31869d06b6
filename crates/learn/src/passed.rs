//! Progress of a connection when its user moved on to the next group.

use swell_traffic::Exchange;

/// Amount of data that has passed on a connection, from the client and from the server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Passed {
    /// Bytes of data of a TCP connection.
    pub(crate) bytes: [u64; 2],
    /// SYNs of an attempt, or datagrams of a flow.
    pub(crate) packets: [u64; 2],
}

impl Passed {
    /// Number of units of the exchange that had passed completely; `None` if all had.
    pub(crate) fn units(&self, exchange: &Exchange) -> Option<[u32; 2]> {
        let passed = match exchange {
            Exchange::Sequential(turns) => [
                whole(self.bytes[0], turns.iter().map(|t| t.request)),
                whole(self.bytes[1], turns.iter().map(|t| t.response)),
            ],
            Exchange::Concurrent { up, down } => [
                whole(self.bytes[0], up.iter().map(|u| u.bytes)),
                whole(self.bytes[1], down.iter().map(|u| u.bytes)),
            ],
            Exchange::Attempt { .. } | Exchange::Datagrams(_) => {
                let units = exchange.units();
                [0, 1].map(|i| {
                    let n = self.packets[i].min(units[i] as u64) as u32;
                    (n, self.packets[i] >= units[i] as u64)
                })
            }
        };
        let all = passed.iter().all(|p| p.1);
        (!all).then_some(passed.map(|p| p.0))
    }
}

/// Counts the units that lie within the first `bytes`. Also returns whether no non-empty unit remains.
fn whole(bytes: u64, units: impl Iterator<Item = u64>) -> (u32, bool) {
    let mut sum = 0u64;
    let mut count = 0;
    for (i, unit) in (1..).zip(units) {
        sum = sum.saturating_add(unit);
        if sum > bytes {
            return (count, false);
        }
        if unit > 0 {
            count = i;
        }
    }
    (count, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_traffic::{Turn, Unit};

    fn turns(of: &[(u64, u64)]) -> Exchange {
        let turn = |&(request, response)| Turn {
            request,
            response,
            ..Turn::default()
        };
        Exchange::Sequential(of.iter().map(turn).collect())
    }

    fn after(up: u64, down: u64, exchange: &Exchange) -> Option<[u32; 2]> {
        let passed = Passed {
            bytes: [up, down],
            packets: [up, down],
        };
        passed.units(exchange)
    }

    #[test]
    fn units_count_when_they_are_complete() {
        let e = turns(&[(10, 100), (20, 0), (0, 300), (5, 5)]);
        assert_eq!(after(0, 0, &e), Some([0, 0]));
        assert_eq!(after(10, 99, &e), Some([1, 0]));
        assert_eq!(after(30, 100, &e), Some([2, 1]));
        assert_eq!(after(34, 400, &e), Some([2, 3]));
        assert_eq!(after(35, 405, &e), None);
    }

    #[test]
    fn each_kind_has_its_units() {
        let unit = |bytes| Unit {
            bytes,
            ..Unit::default()
        };
        let both = Exchange::Concurrent {
            up: vec![unit(7), unit(7)],
            down: vec![unit(9)],
        };
        assert_eq!(after(7, 9, &both), Some([1, 1]));
        let attempt = Exchange::Attempt {
            retries: vec![swell_base::Dur::from_secs(1); 2],
            refused: false,
        };
        assert_eq!(after(2, 0, &attempt), Some([2, 0]));
        assert_eq!(after(3, 0, &attempt), None);
    }
}
