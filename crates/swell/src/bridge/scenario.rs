//! Scenarios in the syntax of the QUIC interop runner's network (quic-interop/quic-network-simulator), and one more with
//! a learnt background.

use std::collections::BTreeMap;
use std::str::FromStr;

use swell_base::{Dur, QueueLimit, Rate};
use swell_emulate::{Fault, Faults, Rebind};

/// The parts of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scenario {
    /// Rate of the link in both directions.
    pub rate: Rate,
    /// One-way delay.
    pub delay: Dur,
    /// Queue limit in packets.
    pub queue: QueueLimit,
    /// The background on the link.
    pub others: Others,
    /// Faults other than those of the link itself.
    pub faults: Faults,
}

/// The background on the link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Others {
    /// The background that the command line names.
    Named,
    /// A model and its mean rate towards the client.
    Learnt(String, Option<Rate>),
    /// One endless TCP transfer towards the client.
    Tcp,
    /// UDP at a constant rate towards the client.
    Udp(Rate),
}

impl Others {
    /// Whether the command line may say what rate the background has.
    pub(crate) fn takes_load(&self) -> bool {
        matches!(self, Others::Named | Others::Learnt(_, None))
    }
}

const NAMES: &str = "simple-p2p, drop-rate, corrupt-rate, droplist, blackhole, rebind, tcp-cross-traffic, udp-cross-traffic, learnt";

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Scenario, String> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or_else(|| format!("one of {NAMES}"))?;
        let mut given = Given(BTreeMap::new());
        for word in words {
            let (key, value) = word
                .strip_prefix("--")
                .map(|w| w.split_once('=').unwrap_or((w, "true")))
                .ok_or_else(|| format!("`{word}` is not --KEY=VALUE"))?;
            if given.0.insert(key, value).is_some() {
                return Err(format!("--{key} is there twice"));
            }
        }
        let mut faults = Faults::default();
        let mut others = Others::Named;
        match name {
            "simple-p2p" => {}
            "drop-rate" | "corrupt-rate" => {
                for (end, party) in ["client", "server"].into_iter().enumerate() {
                    let percent: f64 = given.needed(&format!("rate_to_{party}"))?;
                    if !(0.0..=100.0).contains(&percent) {
                        return Err(format!("rate_to_{party}: {percent} is no percentage"));
                    }
                    let share = percent / 100.0;
                    let run = given.get(&format!("burst_to_{party}"))?.unwrap_or(u32::MAX);
                    faults.ends[end].push(match name {
                        "drop-rate" => Fault::Drop { share, run },
                        _ => Fault::Corrupt { share, run },
                    });
                }
            }
            "droplist" => {
                for (end, party) in ["client", "server"].into_iter().enumerate() {
                    let key = format!("drops_to_{party}");
                    let list: String = given.get(&key)?.unwrap_or_default();
                    let numbers = list.split(',').filter(|n| !n.is_empty());
                    let numbers: Result<_, _> = numbers.map(|n| read(&key, n)).collect();
                    faults.ends[end].push(Fault::List(numbers?));
                }
            }
            "blackhole" => {
                let hole = Fault::Blackhole {
                    on: given.needed("on")?,
                    off: given.needed("off")?,
                    times: given.get("repeat")?.unwrap_or(1),
                };
                let direction: Option<String> = given.get("direction")?;
                let ends = match direction.as_deref() {
                    None | Some("both") => [true, true],
                    Some("toclient") => [true, false],
                    Some("toserver") => [false, true],
                    Some(other) => {
                        return Err(format!(
                            "direction: `{other}` is not both, toclient or toserver"
                        ));
                    }
                };
                for end in (0..2).filter(|&end| ends[end]) {
                    faults.ends[end].push(hole.clone());
                }
            }
            "rebind" => {
                let every: Option<Dur> = given.get("rebind-freq")?;
                faults.rebind = Some(Rebind {
                    first: given.needed("first-rebind")?,
                    every: every.filter(|&e| e > Dur::ZERO),
                    address: given.get("rebind-addr")?.unwrap_or(false),
                });
            }
            "tcp-cross-traffic" => others = Others::Tcp,
            "udp-cross-traffic" => others = Others::Udp(given.needed("crossdatarate")?),
            "learnt" => others = Others::Learnt(given.needed("model")?, given.get("load")?),
            _ => return Err(format!("`{name}` is not one of {NAMES}")),
        }
        let packets: u64 = given.needed("queue")?;
        let scenario = Scenario {
            rate: given.needed("bandwidth")?,
            delay: given.needed("delay")?,
            queue: QueueLimit::Packets(packets),
            others,
            faults,
        };
        match given.0.keys().next() {
            None => Ok(scenario),
            Some(key) => Err(format!("{name} has no --{key}")),
        }
    }
}

/// Given keys that have not been read yet.
struct Given<'t>(BTreeMap<&'t str, &'t str>);

impl Given<'_> {
    fn get<T: FromStr<Err: ToString>>(&mut self, key: &str) -> Result<Option<T>, String> {
        self.0.remove(key).map(|value| read(key, value)).transpose()
    }

    fn needed<T: FromStr<Err: ToString>>(&mut self, key: &str) -> Result<T, String> {
        self.get(key)?.ok_or_else(|| format!("--{key} is missing"))
    }
}

fn read<T: FromStr<Err: ToString>>(key: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|e: T::Err| format!("{key}: {}", e.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const LINK: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

    fn read(rest: &str) -> Result<Scenario, String> {
        let (name, more) = rest.split_once(' ').unwrap_or((rest, ""));
        format!("{name} {LINK} {more}").parse()
    }

    /// Scenarios as in the runner's test cases.
    #[test]
    fn the_scenarios_of_the_runner_are_read() {
        let simple = read("simple-p2p").unwrap();
        assert_eq!(simple.rate, Rate::from_bps(10_000_000));
        assert_eq!(simple.delay, Dur::from_millis(15));
        assert_eq!(simple.queue, QueueLimit::Packets(25));
        assert_eq!(
            (simple.others, simple.faults),
            (Others::Named, Faults::default())
        );

        let rates = "--rate_to_server=30 --rate_to_client=2 --burst_to_server=3";
        for (name, faults) in [
            (
                "drop-rate",
                [(0.02, u32::MAX), (0.3, 3)].map(|(share, run)| Fault::Drop { share, run }),
            ),
            (
                "corrupt-rate",
                [(0.02, u32::MAX), (0.3, 3)].map(|(share, run)| Fault::Corrupt { share, run }),
            ),
        ] {
            let ends = read(&format!("{name} {rates}")).unwrap().faults.ends;
            assert_eq!(ends, faults.map(|f| vec![f]));
        }

        let ends = read("droplist --drops_to_server=2,3,4")
            .unwrap()
            .faults
            .ends;
        assert_eq!(ends[1], [Fault::List(BTreeSet::from([2, 3, 4]))]);
        assert_eq!(ends[0], [Fault::List(BTreeSet::new())]);

        let closed = read("blackhole --on=5s --off=2s --direction=toclient")
            .unwrap()
            .faults
            .ends;
        let hole = Fault::Blackhole {
            on: Dur::from_secs(5),
            off: Dur::from_secs(2),
            times: 1,
        };
        assert_eq!(closed, [vec![hole], vec![]]);

        let rebind = |more: &str| {
            read(&format!("rebind --first-rebind=1s {more}"))
                .unwrap()
                .faults
                .rebind
        };
        let once = Rebind {
            first: Dur::from_secs(1),
            every: None,
            address: false,
        };
        assert_eq!(rebind(""), Some(once));
        let every = Some(Dur::from_secs(5));
        let address = true;
        assert_eq!(
            rebind("--rebind-freq=5s --rebind-addr"),
            Some(Rebind {
                every,
                address,
                ..once
            })
        );

        assert_eq!(read("tcp-cross-traffic").unwrap().others, Others::Tcp);
        let udp = read("udp-cross-traffic --crossdatarate=5Mbps")
            .unwrap()
            .others;
        assert_eq!(udp, Others::Udp(Rate::from_bps(5_000_000)));
        let learnt = read("learnt --model=access-link --load=6Mbps")
            .unwrap()
            .others;
        assert_eq!(
            learnt,
            Others::Learnt("access-link".into(), Some(Rate::from_bps(6_000_000)))
        );
        // What the scenario says, the command line cannot say otherwise.
        let open = read("learnt --model=access-link").unwrap().others;
        assert!(open.takes_load() && Others::Named.takes_load());
        assert!(!learnt.takes_load() && !udp.takes_load() && !Others::Tcp.takes_load());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            ("", "simple-p2p"),
            ("complex", "`complex` is not one of"),
            (
                "simple-p2p --delay=15ms --queue=25",
                "--bandwidth is missing",
            ),
            (
                "simple-p2p --delay=15 --bandwidth=1Mbps --queue=25",
                "delay:",
            ),
            (
                "simple-p2p --delay=1ms --bandwidth=1Mbps --queue=25 --off=2s",
                "has no --off",
            ),
            ("drop-rate --rate_to_client=101", "no percentage"),
            ("droplist --drops_to_server=1,x", "drops_to_server"),
            ("blackhole --on=1s --off=1s --direction=up", "`up`"),
            ("simple-p2p 15ms", "`15ms` is not --KEY=VALUE"),
            (
                "simple-p2p --delay=1ms --delay=2ms",
                "--delay is there twice",
            ),
        ] {
            let error = text.parse::<Scenario>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
