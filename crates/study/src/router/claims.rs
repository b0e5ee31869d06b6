//! What the paper says of routers under learnt and under constant traffic (section 6), and of the generator itself.

use super::bench::{BURSTS, Bench, Mix, Regime, TABLE, TABLES};
use super::capacity::Capacity;
use super::results::Results;
use crate::ledger::Claim;
use crate::words;
use crate::{Finding, Ledger, Verdict};

/// Losses below which nothing is said of how they follow each other.
const FEW: f64 = 30.0;

/// Sessions and constant spacing at one size of the table.
struct AtTable<'a> {
    results: &'a Results<'a>,
    routes: u32,
}

impl AtTable<'_> {
    /// A number of the sessions and of the generator that offers as much with packets of 1500 bytes.
    fn pair(&self, regime: Regime, number: &str) -> Option<[f64; 2]> {
        let sessions = Bench::sessions(regime, self.routes);
        let constant = Bench::constant(Mix::Large, 1, regime, self.routes);
        if !self.results.is_fair(constant) {
            return None;
        }
        Some([
            self.results.get(sessions, number)?,
            self.results.get(constant, number)?,
        ])
    }

    /// The sessions' number over the generator's, less one.
    fn off(&self, regime: Regime, number: &str) -> Option<f64> {
        let [sessions, constant] = self.pair(regime, number)?;
        Some(sessions / constant - 1.0)
    }

    /// Deviation over mean of the rate forwarded.
    fn variability(&self, regime: Regime) -> Option<[f64; 2]> {
        let [a, b] = self.pair(regime, "forwarded")?;
        let [c, d] = self.pair(regime, "forwarded_sd")?;
        Some([c / a, d / b])
    }
}

/// The ledger of sessions against constant spacing, by size of the table.
pub fn tables(results: &Results<'_>) -> Ledger {
    let there = |routes: &u32| results.runs().any(|r| r.routes == *routes);
    let columns: Vec<(String, AtTable<'_>)> = TABLES
        .into_iter()
        .filter(there)
        .map(|routes| (format!("{routes} routes"), AtTable { results, routes }))
        .collect();
    Ledger::of(
        "Learnt sessions against constant spacing, equal mean loads",
        &table_claims(),
        &columns,
    )
}

fn table_claims<'a>() -> [Claim<AtTable<'a>>; 7] {
    [
        Claim {
            id: "S4.10a",
            claim: "at low load both are forwarded alike",
            paper: "figure 13(a): near-perfect match",
            rule: "holds: mean rates within 1 %, and less than 0.1 % lost of either; in part: within 3 %",
            find: |t| {
                let off = t.off(Regime::Low, "forwarded")?;
                let [a, b] = t.pair(Regime::Low, "loss")?;
                let near = off.abs() <= 0.01 && a.max(b) < 1e-3;
                Some(Finding::exact(
                    Verdict::of(near, off.abs() <= 0.03),
                    words::tenths(off),
                    format!("sessions over constant; lost {} and {}", share(a), share(b)),
                    off,
                ))
            },
        },
        Claim {
            id: "S4.10b",
            claim: "at high load sessions are forwarded at a lower rate, for they lose packets",
            paper: "figure 13(b)",
            rule: "holds: mean rate over 1 % lower, and only sessions lose over 0.1 %; in part: sessions lose more",
            find: |t| {
                let off = t.off(Regime::High, "forwarded")?;
                let [a, b] = t.pair(Regime::High, "loss")?;
                Some(Finding::exact(
                    Verdict::of(off < -0.01 && a > 1e-3 && b <= 1e-3, a > b),
                    words::tenths(off),
                    format!("sessions over constant; lost {} and {}", share(a), share(b)),
                    off,
                ))
            },
        },
        Claim {
            id: "S4.10c",
            claim: "the rate forwarded is far more variable with sessions",
            paper: "figures 12(a) and 13: bars of one deviation",
            rule: "holds: deviation over mean at least three times as large, at low and high load; in part: larger",
            find: |t| {
                let (low, high) = (t.variability(Regime::Low)?, t.variability(Regime::High)?);
                let more = |factor: f64| [low, high].iter().all(|[a, b]| *a > factor * b);
                Some(Finding::exact(
                    Verdict::of(more(3.0), more(1.0)),
                    format!("{} and {}", share(high[0]), share(high[1])),
                    format!(
                        "of the mean at high load, sessions and constant; at low load {} and {}",
                        share(low[0]),
                        share(low[1])
                    ),
                    high[0] / high[1],
                ))
            },
        },
        Claim {
            id: "S4.10d",
            claim: "losses of sessions are correlated",
            paper: "likely correlated and bursty",
            rule: "holds: behind a lost packet over five times as many are lost as of all; in part: twice",
            find: |t| {
                let bench = Bench::sessions(Regime::High, t.routes);
                let get = |n| t.results.get(bench, n);
                let (lost, loss, after) = (get("lost")?, get("loss")?, get("after_loss")?);
                if lost < FEW {
                    return None;
                }
                let times = after / loss;
                Some(Finding::exact(
                    Verdict::of(times > 5.0, times > 2.0),
                    format!("{times:.0} times"),
                    format!(
                        "{} of those behind a lost one, {} of all; runs of {:.1} packets in the mean, {:.0} at most",
                        share(after),
                        share(loss),
                        get("run_mean")?,
                        get("run_max")?
                    ),
                    times,
                ))
            },
        },
        Claim {
            id: "S4.10e",
            claim: "what the router is busy with varies more with sessions",
            paper: "figure 14(b), utilisation of the switching fabric",
            rule: "holds: deviation of the processor's share at high load at least twice the constant's; in part: larger",
            find: |t| {
                let [a, b] = t.pair(Regime::High, "busy_sd")?;
                let [mean, constant] = t.pair(Regime::High, "busy")?;
                Some(Finding::exact(
                    Verdict::of(a >= 2.0 * b, a > b),
                    format!("{:.1} and {:.1} points", a * 100.0, b * 100.0),
                    format!(
                        "deviation over intervals, of {} and {} of a processor",
                        share(mean),
                        share(constant)
                    ),
                    a / b,
                ))
            },
        },
        Claim {
            id: "S4.10f",
            claim: "the larger the table, the more variable",
            paper: "figure 13: variance grows with the table",
            rule: "holds: deviation of the sessions' rate at high load over 1.2 times that with the smallest table; in \
               part: 1.05 times",
            find: |t| {
                let smallest = *TABLES.iter().find(|&&routes| {
                    let bench = Bench::sessions(Regime::High, routes);
                    t.results.get(bench, "forwarded_sd").is_some()
                })?;
                if smallest == t.routes {
                    return None;
                }
                let of = |routes| {
                    t.results
                        .get(Bench::sessions(Regime::High, routes), "forwarded_sd")
                };
                let times = of(t.routes)? / of(smallest)?;
                Some(Finding::exact(
                    Verdict::of(times > 1.2, times > 1.05),
                    format!("{times:.2} times"),
                    format!("that with {smallest} routes"),
                    times,
                ))
            },
        },
        Claim {
            id: "S4.10g",
            claim: "the larger the table, the dearer a packet",
            paper: "not measured there; asked here of the kernel's trie",
            rule: "holds: processor time of a small packet over 10 % more than with the smallest table, with the line \
               open; in part: over 3 %",
            find: |t| {
                let flood = |routes| Bench::constant(Mix::Small, 1, Regime::Bare, routes);
                let of = |routes| t.results.get(flood(routes), "us_per_packet");
                let smallest = *TABLES.iter().find(|&&routes| of(routes).is_some())?;
                let (own, least) = (of(t.routes)?, of(smallest)?);
                if smallest == t.routes {
                    return None;
                }
                let off = own / least - 1.0;
                Some(Finding::exact(
                    Verdict::of(off > 0.1, off > 0.03),
                    words::tenths(off),
                    format!("{own:.2} us a packet, with {smallest} routes {least:.2}"),
                    off,
                ))
            },
        },
    ]
}

/// A generator with bursts or other sizes, compared with the evenly spaced one of 1500 bytes.
struct Varied<'a> {
    results: &'a Results<'a>,
    mix: Mix,
    burst: u32,
}

impl Varied<'_> {
    fn own(&self) -> Bench {
        Bench::constant(self.mix, self.burst, Regime::High, TABLE)
    }

    fn get(&self, number: &str) -> Option<f64> {
        let own = self.own();
        self.results
            .get(own, number)
            .filter(|_| self.results.is_fair(own))
    }

    fn even(&self, number: &str) -> Option<f64> {
        let even = Bench::constant(Mix::Large, 1, Regime::High, TABLE);
        self.results.get(even, number)
    }
}

/// The ledger of what a constant-spacing generator can be set to.
pub fn patterns(results: &Results<'_>) -> Ledger {
    let bursts = BURSTS.map(|burst| (format!("bursts of {burst}"), Mix::Large, burst));
    let sizes = [
        ("40 bytes".to_owned(), Mix::Small, 1),
        ("trimodal".to_owned(), Mix::Trimodal, 1),
    ];
    let columns: Vec<(String, Varied<'_>)> = bursts
        .into_iter()
        .chain(sizes)
        .map(|(name, mix, burst)| {
            (
                name,
                Varied {
                    results,
                    mix,
                    burst,
                },
            )
        })
        .filter(|(_, v)| results.runs().any(|r| r == v.own()))
        .collect();
    Ledger::of(
        "Constant spacing, other bursts and sizes, at high load",
        &pattern_claims(),
        &columns,
    )
}

fn pattern_claims<'a>() -> [Claim<Varied<'a>>; 3] {
    [
        Claim {
            id: "S4.10h",
            claim: "bursts from 697 and packets of 40 bytes are forwarded at a lower rate, shorter bursts and the mix \
                are not",
            paper: "figures 12(b) and 12(c): 180 Mbit/s lower at 930 than at 465, 140 lower at 40 bytes",
            rule: "holds: over 1 % lower where the paper's is, within 1 % where it is not, of even spacing and 1500 \
               bytes; in part: lower at all, within 3 %",
            find: |v| {
                let off = v.get("forwarded")? / v.even("forwarded")? - 1.0;
                let lower = v.burst >= 697 || v.mix == Mix::Small;
                let verdict = if lower {
                    Verdict::of(off < -0.01, off < -0.001)
                } else {
                    Verdict::of(off.abs() <= 0.01, off.abs() <= 0.03)
                };
                let detail = format!("lost {}", share(v.get("loss")?));
                Some(Finding::exact(verdict, words::tenths(off), detail, off))
            },
        },
        Claim {
            id: "S4.10i",
            claim: "the rate does not vary, whatever the pattern",
            paper: "low variation at every burst and size",
            rule: "holds: deviation over intervals at most 1 % of the mean; in part: less than a third of the sessions'",
            find: |v| {
                let own = v.get("forwarded_sd")? / v.get("forwarded")?;
                let sessions = Bench::sessions(Regime::High, TABLE);
                let theirs = v.results.get(sessions, "forwarded_sd")?
                    / v.results.get(sessions, "forwarded")?;
                Some(Finding::exact(
                    Verdict::of(own <= 0.01, own < theirs / 3.0),
                    share(own),
                    format!("of the mean; sessions {}", share(theirs)),
                    own,
                ))
            },
        },
        Claim {
            id: "S4.10j",
            claim: "the loss rate stays what it is, that of sessions does not",
            paper: "figure 14(a)",
            rule: "holds: deviation of the loss over intervals less than a third of its mean, or nothing lost, and of the \
               sessions' more than half; in part: relatively less than the sessions'",
            find: |v| {
                let sessions = Bench::sessions(Regime::High, TABLE);
                let theirs =
                    v.results.get(sessions, "loss_sd")? / v.results.get(sessions, "loss")?;
                let (loss, sd) = (v.get("loss")?, v.get("loss_sd")?);
                let own = if loss > 0.0 { sd / loss } else { 0.0 };
                Some(Finding::exact(
                    Verdict::of(own < 1.0 / 3.0 && theirs > 0.5, own < theirs),
                    format!("{} ± {}", share(loss), share(sd)),
                    format!(
                        "sessions {} ± {}; runs of {:.1} packets in the mean",
                        share(v.results.get(sessions, "loss")?),
                        share(v.results.get(sessions, "loss_sd")?),
                        v.get("run_mean").unwrap_or(0.0)
                    ),
                    loss,
                ))
            },
        },
    ]
}

/// The ledger of the generator's own capacity.
pub fn capacity(capacity: &Capacity) -> Ledger {
    let column = format!("{} sessions", capacity.sessions);
    Ledger::of(
        "The generator itself: one process at each end",
        CAPACITY_CLAIMS,
        &[(column, capacity.clone())],
    )
}

const CAPACITY_CLAIMS: &[Claim<Capacity>] = &[
    Claim {
        id: "S4.11a",
        claim: "a process makes a few hundred Mbit/s",
        paper: "a few hundred, on workstations of 2004",
        rule: "holds: at least 300 Mbit/s of one stream over a cable; in part: 100",
        find: |c| {
            let mbit = c.bulk?.bps() as f64 / 1e6;
            let detail = "payload of one TCP stream between two hosts of this machine".to_owned();
            Some(Finding::exact(
                Verdict::of(mbit >= 300.0, mbit >= 100.0),
                format!("{mbit:.0} Mbit/s"),
                detail,
                mbit,
            ))
        },
    },
    Claim {
        id: "S4.11b",
        claim: "thousands of sessions at a time",
        paper: "thousands",
        rule: "holds: at least 2000 active, none of their transfers failed, 99 % begun within 5 ms; in part: none \
               failed",
        find: |c| {
            let enough = c.active >= 2_000 && c.failed == 0 && c.done > 0;
            Some(Finding::exact(
                Verdict::of(enough && c.late <= 5e-3, enough),
                format!("{} active", c.active),
                format!(
                    "{} transfers done, {} failed; 99 % begun within {:.2} ms",
                    c.done,
                    c.failed,
                    c.late * 1e3
                ),
                c.active as f64,
            ))
        },
    },
    Claim {
        id: "S4.11c",
        claim: "in less than 10 MB of memory",
        paper: "normally less than 10 MB, client or server",
        rule: "holds: most resident memory of both processes below 10 MB with these sessions; in part: below 10 kB a \
               session and 10 MB",
        find: |c| {
            let [client, server] = c.memory?.map(|b| b as f64 / 1e6);
            let most = client.max(server);
            let fair = 10.0 + c.sessions as f64 * 0.01;
            Some(Finding::exact(
                Verdict::of(most < 10.0, most < fair),
                format!("{client:.1} and {server:.1} MB"),
                format!(
                    "client and server at most; {:.1} and {:.1} MB before",
                    c.idle[0], c.idle[1]
                ),
                most,
            ))
        },
    },
    Claim {
        id: "S4.11d",
        claim: "started, reconfigured, asked and stopped from afar",
        paper: "by XML-RPC",
        rule: "holds: in this run a second process started both, doubled the load, which was seen in their sessions, \
               and stopped them",
        find: |c| {
            let [before, after] = c.reloaded?;
            let doubled = before > 0 && after.abs_diff(2 * before) * 20 <= 2 * before;
            Some(Finding::exact(
                Verdict::of(doubled && c.stopped, c.stopped),
                format!("{before} to {after}"),
                "sessions, when the load was doubled".to_owned(),
                after as f64 / before.max(1) as f64,
            ))
        },
    },
];

fn share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent == 0.0 || percent.abs() >= 1.0 {
        1
    } else {
        2
    };
    format!("{percent:.digits$} %")
}
