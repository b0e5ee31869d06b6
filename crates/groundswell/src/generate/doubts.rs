//! Reasons to distrust the results of generated traffic.

use swell_base::{Code, Warning};

use swell_generate::Counts;
use swell_generate::agent::{Refusals, Standing};

use super::agents::{Agents, EndCause};

/// A note says so if the last transfers took this many seconds longer than the traffic. Kernels that send a lost segment
/// again take up to three.
const DRAINED: f64 = 3.0;

/// A share of datagrams above this that did not arrive causes a warning.
const LOST: f64 = 0.01;
/// Datagrams of so many seconds may still be on their way when a run is cut off.
const ON_THE_WAY: f64 = 0.2;

/// A note if the last transfers took much longer than the traffic that was planned, in seconds.
pub(super) fn drained(seconds: f64, planned: f64) -> Option<Warning> {
    (seconds > planned + DRAINED).then(|| {
        let text = format!(
            "the model was over after {planned:.1} s, but the last transfer in progress ended {:.1} s later; rates are \
             those of the time before",
            seconds - planned
        );
        Warning::note(Code::Drained, text)
    })
}

/// Warnings about connections that were refused where agents dial in.
pub(super) fn refused(refusals: Refusals) -> Vec<Warning> {
    let twice = refusals.twice.into_values();
    let mut all: Vec<Warning> = twice
        .map(|text| Warning::warning(Code::AgentTwice, text))
        .collect();
    if let Some(last) = refusals.last {
        let text = format!(
            "{} connections were refused where agents dial in; the last, {last}",
            refusals.count
        );
        all.push(Warning::note(Code::DialInRefused, text));
    }
    all
}

/// Warnings about datagrams that were sent and did not arrive, for either direction, in a run that `ended` like this. None
/// if an agent was lost or started anew: what it sent and received at the end is not known.
pub(super) fn datagrams_lost(agents: &Agents, ended: EndCause) -> Vec<Warning> {
    let all = || agents.clients.iter().chain(&agents.servers);
    if !agents.lost.is_empty() || all().any(|s| s.returns > 0 || s.statistics.is_none()) {
        return Vec::new();
    }
    let sum = |of: &[Standing], count: fn(&Counts) -> u64| -> u64 {
        let counted = of.iter().filter_map(|s| s.statistics.as_ref());
        counted.map(|s| count(&s.counts)).sum()
    };
    let cut_off = match ended {
        EndCause::Played => 0.0,
        _ => ON_THE_WAY / agents.seconds(),
    };
    let (clients, servers) = (&agents.clients, &agents.servers);
    let directions = [
        ("clients", clients, "servers", servers),
        ("servers", servers, "clients", clients),
    ];
    let lost = directions.map(|(from, sending, to, receiving)| {
        let sent = sum(sending, |c| c.datagrams_sent);
        // Strangers have arrived, too: what comes after its source or its client has ended is one.
        let arrived = sum(receiving, |c| {
            c.datagrams_received.saturating_add(c.stranger_datagrams)
        });
        let lost = sent.saturating_sub(arrived);
        (lost as f64 > sent as f64 * (LOST + cut_off)).then(|| {
            let share = 100.0 * lost as f64 / sent as f64;
            let text = format!(
                "{lost} of {sent} datagrams from {from} to {to} did not arrive ({share:.1} %): the network lost them, \
                 the receiving host had no room for them, or they came after their source had ended"
            );
            Warning::warning(Code::DatagramsLost, text)
        })
    });
    lost.into_iter().flatten().collect()
}

/// Reasons to distrust the results, agent by agent.
pub(super) fn doubts(agents: &Agents) -> Vec<Warning> {
    let mut all = Vec::new();
    // Agents that give the same warning give it together.
    let mut own: Vec<(&Code, &str, Vec<&str>)> = Vec::new();
    for standing in agents.clients.iter().chain(&agents.servers) {
        let agent = &standing.agent;
        let lost = agents.lost.contains(agent);
        let trouble = standing.trouble.as_deref();
        if lost && standing.refuses {
            let why = trouble.unwrap_or("no reason given");
            all.push(Warning::warning(
                Code::AgentLost,
                format!("{agent} plays no longer, and refuses to: {why}"),
            ));
        } else if lost {
            let text = "was lost: it did not answer for as long as its lease, and plays nothing";
            all.push(Warning::warning(Code::AgentLost, format!("{agent} {text}")));
        } else if standing.returns > 0 {
            let text = format!(
                "{agent} played nothing for {:.1} s: it was cut off or started anew, and came back \
                 (times: {})",
                standing.away.as_secs_f64(),
                standing.returns
            );
            all.push(Warning::warning(Code::AgentReturned, text));
        }
        if let Some(trouble) = trouble.filter(|_| !(lost && standing.refuses)) {
            let text = format!("{agent} could not be asked at times: {trouble}");
            all.push(Warning::warning(Code::AgentAway, text));
        }
        for (flows, why) in [
            (
                standing.lost,
                "the agent was started anew, or had no more room",
            ),
            (standing.waiting, "the agent no longer answered"),
            (
                agents.cut_off(standing),
                "the agent was lost or started anew in the middle",
            ),
        ] {
            if flows > 0 {
                let text = match flows {
                    1 => format!("1 flow of {agent} has no row: {why}"),
                    _ => format!("{flows} flows of {agent} have no row: {why}"),
                };
                all.push(Warning::warning(Code::FlowsLost, text));
            }
        }
        for w in standing.statistics.iter().flat_map(|s| &s.warnings) {
            match own.iter_mut().find(|o| *o.0 == w.code && o.1 == w.message) {
                Some(known) => known.2.push(agent),
                None => own.push((&w.code, &w.message, vec![agent])),
            }
        }
    }
    all.extend(own.into_iter().map(|(code, message, who)| {
        Warning::warning(code.clone(), format!("{}: {message}", who.join(", ")))
    }));
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    /// An agent with these counts, whose run is in this state.
    pub(crate) fn agent_in(name: &str, state: &str, counts: serde_json::Value) -> Standing {
        let mut all: serde_json::Map<String, serde_json::Value> = serde_json::Map::new();
        let names = swell_generate::Counts::default();
        all.extend(names.each().map(|(count, n)| (count.to_owned(), n.into())));
        all.extend(counts.as_object().unwrap().clone());
        let statistics = serde_json::json!({
            "run": {
                "id": 1, "part": "client", "instance": "", "state": state, "port": 0, "datagrams": 0, "elapsed_s": 9.0,
            },
            "counts": all, "sessions": 0, "open": 0, "parties": 1, "absent": [], "refused": [],
            "late": { "count": 0, "p50_us": 0.0, "p99_us": 0.0, "p999_us": 0.0, "max_us": 0.0 },
            "failures": {}, "source_failures": {}, "flows": 0, "warnings": [{ "code": "c", "message": "the same of all" }],
        });
        Standing {
            agent: name.into(),
            statistics: serde_json::from_value(statistics).unwrap(),
            trouble: None,
            refuses: false,
            lost: 0,
            waiting: 0,
            missing: false,
            away: Duration::ZERO,
            returns: 0,
            beginning: None,
        }
    }

    fn agent(name: &str, counts: serde_json::Value) -> Standing {
        agent_in(name, "playing", counts)
    }

    fn all(clients: Vec<Standing>, servers: Vec<Standing>, lost: &[&str]) -> Agents {
        Agents {
            clients,
            servers,
            lost: lost.iter().map(|&n| n.to_owned()).collect(),
            logged: true,
        }
    }

    fn of(doubts: &[Warning], code: Code) -> Vec<&str> {
        let own = doubts.iter().filter(|d| d.code == code);
        own.map(|d| d.message.as_str()).collect()
    }

    #[test]
    fn what_was_in_progress_at_a_restart_has_no_row() {
        let counts =
            serde_json::json!({ "begun": 5, "done": 3, "sources_begun": 12, "sources_ended": 6 });
        let steady = agent("a", counts.clone());
        let mut back = agent("b", counts);
        back.returns = 1;
        let agents = all(vec![steady, back], vec![], &[]);
        let doubts = doubts(&agents);
        let lost = of(&doubts, Code::FlowsLost);
        assert_eq!(
            lost,
            ["8 flows of b have no row: the agent was lost or started anew in the middle"]
        );
        let [clients, _] = agents.to_json();
        assert_eq!(
            (&clients[0]["flows_lost"], &clients[1]["flows_lost"]),
            (&0.into(), &8.into())
        );
        let counts_only = Agents {
            logged: false,
            ..agents
        };
        assert!(of(&super::doubts(&counts_only), Code::FlowsLost).is_empty());
    }

    #[test]
    fn datagrams_that_do_not_arrive_are_told_for_each_direction() {
        let sent =
            |n: u64, m: u64| serde_json::json!({ "datagrams_sent": n, "datagrams_received": m });
        let told = |client: [u64; 2], server: [u64; 2]| {
            let clients = vec![
                agent("a", sent(client[0], client[1])),
                agent("b", sent(client[0], client[1])),
            ];
            let servers = vec![agent("s", sent(server[0], server[1]))];
            all(clients, servers, &[])
        };
        let played = |agents: &Agents| datagrams_lost(agents, EndCause::Played);
        assert_eq!(
            played(&told([500, 45], [100, 990])),
            vec![Warning::warning(
                Code::DatagramsLost,
                "10 of 100 datagrams from servers to clients did not arrive (10.0 %): the network lost them, the \
                 receiving host had no room for them, or they came after their source had ended",
            )]
        );
        assert_eq!(played(&told([0, 0], [0, 0])), []);
        let black = played(&told([500, 0], [0, 0]));
        assert!(
            black[0].message.starts_with("1000 of 1000 datagrams"),
            "{black:?}"
        );
        // What an agent counted after it was lost is unknown.
        let mut lost = told([500, 0], [0, 0]);
        lost.lost.push("a".into());
        assert_eq!(played(&lost), []);
        // A run of nine seconds that was cut off: the datagrams of a fifth of a second may be on their way.
        let cut_off = |agents: &Agents| datagrams_lost(agents, EndCause::Duration).len();
        assert_eq!(cut_off(&told([500, 50], [100, 970])), 0);
        assert_eq!(cut_off(&told([500, 50], [100, 960])), 1);
        // What is not known any more has arrived.
        let mut late = told([500, 50], [100, 900]);
        if let Some(statistics) = &mut late.servers[0].statistics {
            (
                statistics.counts.strangers,
                statistics.counts.stranger_datagrams,
            ) = (95, 95);
        }
        assert_eq!(played(&late), []);
        // Connections of strangers are no datagrams.
        if let Some(statistics) = &mut late.servers[0].statistics {
            statistics.counts.stranger_datagrams = 0;
        }
        assert_eq!(played(&late).len(), 1);
    }

    #[test]
    fn an_agent_whose_hours_are_over_was_heard_and_refuses() {
        let mut over = agent("a", serde_json::json!({}));
        over.refuses = true;
        over.trouble = Some("a: this agent plays 22:00-06:00 UTC only (403)".into());
        let silent = agent("b", serde_json::json!({}));
        let doubts = doubts(&all(vec![over], vec![silent], &["a", "b"]));
        let [refuses, lost] = of(&doubts, Code::AgentLost)[..] else {
            panic!("{doubts:?}")
        };
        assert!(
            refuses.ends_with("22:00-06:00 UTC only (403)") && !refuses.contains("did not answer")
        );
        assert!(lost.starts_with("b was lost: it did not answer"));
        assert!(of(&doubts, Code::AgentAway).is_empty());
        assert_eq!(of(&doubts, "c".into()), ["a, b: the same of all"]);
    }

    #[test]
    fn a_long_wait_for_the_last_transfers_is_noted() {
        assert!(drained(62.9, 60.0).is_none() && drained(1e9, f64::INFINITY).is_none());
        let note = drained(95.2, 60.0).unwrap();
        assert!(
            note.message.contains("60.0 s") && note.message.contains("35.2 s later"),
            "{note:?}"
        );
    }
}
