//! The table of the agents of a generated run.

use swell_generate::agent::Standing;

use super::{list, mega, shortened, significant};
use groundswell::generate::Agents;

/// One line per agent; includes failed datagram sources, unfinished transfers and how long agents were inactive, if there are any. `seconds` is the
/// time to which rates relate.
pub(crate) fn list_of(seconds: f64, agents: &Agents) -> String {
    let all = [("client", &agents.clients), ("server", &agents.servers)];
    let all = || all.iter().flat_map(|(p, s)| s.iter().map(move |s| (p, s)));
    let lost = |s: &Standing| agents.lost.contains(&s.agent);
    let any_away = all().any(|(_, s)| s.returns > 0 || lost(s));
    let unfinished = |s: &Standing| s.statistics.as_ref().map_or(0, |s| s.counts.unfinished);
    let any_unfinished = all().any(|(_, s)| unfinished(s) > 0);
    let sources = |s: &Standing| s.statistics.as_ref().map_or(0, |s| s.counts.sources_failed);
    let any_sources = all().any(|(_, s)| sources(s) > 0);
    let mut head = vec!["agent", "done", "failed"];
    head.extend(any_sources.then_some("sources failed"));
    head.extend(any_unfinished.then_some("unfinished"));
    head.extend(["per s", "MB up", "MB down", "late p99", "latest"]);
    head.extend(any_away.then_some("away"));
    let mut table = list(&head);
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
            "client" => format!("{} ms", significant(us / 1e3)),
            _ => String::new(),
        };
        let name = match standing.agent.as_str() {
            name if name == *part => name.to_owned(),
            name => format!("{part} {name}"),
        };
        let mut row = vec![
            shortened(&name, 24),
            c.done.to_string(),
            c.failed.to_string(),
        ];
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
        table.add_row(row);
    }
    table.to_string()
}
