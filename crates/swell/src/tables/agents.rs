//! The table of the agents of a generated run.

use swell_generate::agent::Standing;

use super::text::{list, mega, shortened, significant, too_wide};
use groundswell::generate::Agents;

/// One line per agent; includes failed datagram sources, unfinished transfers and how long agents were inactive, if there are any. `seconds` is the
/// time to which rates relate.
pub(crate) fn list_of(seconds: f64, agents: &Agents) -> String {
    of(seconds, [&agents.clients, &agents.servers], &agents.lost)
}

/// The same of clients and servers, of which those of these names were `lost`.
fn of(seconds: f64, [clients, servers]: [&[Standing]; 2], lost: &[String]) -> String {
    let all = [("client", clients), ("server", servers)];
    let all = || all.iter().flat_map(|(p, s)| s.iter().map(move |s| (p, s)));
    let lost = |s: &Standing| lost.contains(&s.agent);
    let any_away = all().any(|(_, s)| s.returns > 0 || lost(s));
    let unfinished = |s: &Standing| s.statistics.as_ref().map_or(0, |s| s.counts.unfinished);
    let any_unfinished = all().any(|(_, s)| unfinished(s) > 0);
    let sources = |s: &Standing| s.statistics.as_ref().map_or(0, |s| s.counts.sources_failed);
    let any_sources = all().any(|(_, s)| sources(s) > 0);
    let mut head = vec!["agent", "done", "failed"];
    head.extend(any_sources.then_some("sources\nfailed"));
    head.extend(any_unfinished.then_some("un-\nfinished"));
    head.extend(["per s", "MB\nup", "MB\ndown", "late,\nms\np99", "\n\nmax"]);
    head.extend(any_away.then_some("away"));
    let mut rows = Vec::new();
    for (part, standing) in all() {
        let Some(s) = &standing.statistics else {
            continue;
        };
        let c = &s.counts;
        let sent = (c.sent_bytes + c.datagram_bytes_sent) as f64;
        let received = (c.received_bytes + c.datagram_bytes_received) as f64;
        let [up, down] = match *part {
            "client" => [sent, received],
            _ => [received, sent],
        };
        let late = |us: f64| match *part {
            "client" => significant(us / 1e3),
            _ => String::new(),
        };
        let mut row = vec![c.done.to_string(), c.failed.to_string()];
        row.extend(any_sources.then(|| c.sources_failed.to_string()));
        row.extend(any_unfinished.then(|| c.unfinished.to_string()));
        row.extend([
            significant(c.done as f64 / seconds.max(1e-9)),
            mega(up),
            mega(down),
            late(s.late.p99_us),
            late(s.late.max_us),
        ]);
        if any_away {
            row.push(match (lost(standing), standing.returns) {
                (true, _) => "lost".into(),
                (false, 0) => String::new(),
                _ => format!("{} s", significant(standing.away.as_secs_f64())),
            });
        }
        rows.push((*part, standing.agent.as_str(), row));
    }
    // Part and name are in one line if there is room, and names are as long as fits.
    let tables = [(" ", MOST), ("\n", MOST), ("\n", LEAST)].map(|(between, most)| {
        let mut table = list(&head);
        for (part, name, row) in &rows {
            let whole = match name == part {
                true => (*part).to_owned(),
                false => format!("{part}{between}{}", shortened(name, most)),
            };
            table.add_row(std::iter::once(&whole).chain(row));
        }
        table
    });
    let fits = tables.iter().find(|table| !too_wide(table));
    fits.unwrap_or(&tables[2]).to_string()
}

/// Maximum lengths of an agent's name, where there is room and where there is little.
const MOST: usize = 24;
const LEAST: usize = 12;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An agent with these counts, none of which is small.
    fn agent(name: &str, failed: u64, returns: u32) -> Standing {
        let mut counts: serde_json::Map<String, serde_json::Value> = serde_json::Map::new();
        let names = swell_generate::Counts::default();
        counts.extend(names.each().map(|(count, _)| (count.to_owned(), 0.into())));
        for (count, n) in [
            ("done", 1_234_567),
            ("failed", failed),
            ("sources_failed", failed),
            ("unfinished", failed),
            ("sent_bytes", 12_345_600_000),
            ("received_bytes", 12_345_600_000),
        ] {
            counts.insert(count.into(), n.into());
        }
        let statistics = serde_json::json!({
            "run": {
                "id": 1, "part": "client", "instance": "", "state": "done", "port": 0, "datagrams": 0, "elapsed_s": 9.0,
            },
            "counts": counts, "sessions": 0, "open": 0, "parties": 1, "absent": [], "refused": [],
            "late": { "count": 0, "p50_us": 0.0, "p99_us": 123_400.0, "p999_us": 0.0, "max_us": 123_400.0 },
            "failures": {}, "source_failures": {}, "flows": 0, "warnings": [],
        });
        Standing {
            agent: name.into(),
            statistics: serde_json::from_value(statistics).unwrap(),
            trouble: None,
            refuses: false,
            lost: 0,
            waiting: 0,
            missing: false,
            away: Duration::from_secs(123),
            returns,
            beginning: None,
        }
    }

    #[test]
    fn every_agent_fits_into_eighty_columns() {
        let shown = |names: [&str; 2], failed, returns| {
            let [clients, servers] = names.map(|name| vec![agent(name, failed, returns)]);
            of(9.0, [&clients, &servers], &[])
        };
        for (names, failed, returns) in [
            (["client", "server"], 0, 0),
            (["client", "server"], 12_345, 1),
            (["198.51.100.17:8471", "198.51.100.18:8471"], 0, 0),
            (["198.51.100.17:8471", "198.51.100.18:8471"], 12_345, 1),
            (["clients.in.a.far.country.example.net:8471"; 2], 12_345, 1),
        ] {
            let table = shown(names, failed, returns);
            let wide = table.lines().map(|line| line.chars().count()).max();
            assert!(wide <= Some(80), "{wide:?}\n{table}");
        }
    }
}
