//! Tables of flow-level models and of flow records.

use swell_traffic::flowlevel::{Estimate, FlowModel, Interval, Law, Popularity};

use super::text::{list, mega, significant, wrapped};

/// Maximum width of the chart of intervals, in characters.
const COLUMNS: usize = 72;

/// The bundled flow-level models.
pub(crate) fn models(listed: &[(&str, FlowModel)]) -> String {
    let mut table = list(&[
        "flow-level\nmodel",
        "seconds",
        "Mbit/s\nto servers",
        "Mbit/s\nto clients",
        "connections",
    ]);
    for (name, model) in listed {
        let [up, down] = model.payload_rates();
        table.add_row([
            (*name).to_owned(),
            format!("{:.0}", model.duration().as_secs_f64()),
            mega(up),
            mega(down),
            model.tcp.down.count().to_string(),
        ]);
    }
    let notes = listed
        .iter()
        .map(|(name, m)| wrapped(&format!("{name}: {}", m.provenance.note)));
    let notes: Vec<String> = notes.collect();
    format!(
        "{table}\nPayload; for `swell generate` and kind = \"sessions\".\n\n{}",
        notes.join("\n")
    )
}

/// Summary of a flow-level model: totals, distributions, hosts, UDP sources, and the intervals as a chart.
pub(crate) fn model(model: &FlowModel) -> String {
    let t = &model.totals;
    let tcp = &model.tcp;
    let seconds = model.duration().as_secs_f64();
    let mut text = wrapped(&format!(
        "{} (flow-level, profile {}): {} intervals of {}; {} Mbit/s on the wire",
        model.name,
        model.profile.name(),
        tcp.intervals.len(),
        model.interval,
        mega(t.bytes as f64 * 8.0 / seconds.max(1e-9)),
    ));
    let read = format!(
        "{} flow records ({} refused), {} joined; {} TCP connections ({} not seen whole), \
         {} more dropped (not accepted, or too small); {} directions without a file",
        t.records,
        t.refused,
        t.joined,
        tcp.down.count(),
        t.censored,
        t.dropped,
        t.small,
    );
    text += &format!("\n{}\n", wrapped(&read));
    if !model.sampled.is_empty() {
        text += &format!("{}\n", sampled(model));
    }
    let mut laws = list(&["TCP", "mean", "p10", "p50", "p90", "p99", "total"]);
    let bytes: fn(f64) -> String = |x| shortened(x, "B");
    let up = tcp.up.law().filter(|l| l.mean() > 0.0);
    row(
        &mut laws,
        "bytes to servers",
        up.as_ref(),
        bytes,
        &bytes(tcp.up.sum() as f64),
    );
    let down = tcp.down.law().filter(|l| l.mean() > 0.0);
    row(
        &mut laws,
        "bytes to clients",
        down.as_ref(),
        bytes,
        &bytes(tcp.down.sum() as f64),
    );
    let gaps = Law::new(&tcp.gaps, &Default::default());
    row(
        &mut laws,
        "s between connections",
        gaps.as_ref(),
        |us| significant(us / 1e6),
        "",
    );
    text += &laws.to_string();
    text += &format!(
        "\nsessions by client: {}\nsessions by server: {}\n",
        hosts(&tcp.sources),
        hosts(&tcp.destinations)
    );
    if !model.udp.is_empty() {
        let mut udp = list(&[
            "UDP",
            "sources",
            "flows",
            "packets",
            "MB",
            "of it to clients",
            "s apart",
        ]);
        for u in &model.udp {
            let apart = Law::new(&u.spacing, &Default::default());
            udp.add_row([
                u.kind.name().to_owned(),
                u.sources.to_string(),
                u.flows.to_string(),
                u.packets.to_string(),
                mega(u.bytes as f64),
                mega(u.answer_bytes as f64),
                apart.map_or_else(|| "-".into(), |l| significant(l.quantile(0.5) / 1e6)),
            ]);
        }
        text += &format!("{udp}\n");
    }
    text + intervals(&tcp.intervals).as_str()
}

/// Estimates from sampled records with 95 % intervals, and what cannot be estimated.
fn sampled(model: &FlowModel) -> String {
    let mut table = list(&[
        "sampled 1 in",
        "connections",
        "MB to servers",
        "MB to clients",
        "sizes resolved from",
        "connections seen",
    ]);
    let shown = |e: Estimate, unit: f64| {
        let [low, high] = e.interval().map(|x| significant(x / unit));
        format!("{} ({low} to {high})", significant(e.value / unit))
    };
    for s in &model.sampled {
        let unknown = || "not identifiable".to_owned();
        table.add_row([
            significant(s.interval),
            s.connections.map_or_else(unknown, |c| shown(c, 1.0)),
            shown(s.bytes[0], 1e6),
            shown(s.bytes[1], 1e6),
            shortened(s.resolved as f64, "B"),
            s.seen.to_string(),
        ]);
    }
    format!("{table}\nNot identifiable: gaps, sessions and popularity but of what was sampled.")
}

fn row(
    table: &mut comfy_table::Table,
    name: &str,
    law: Option<&Law>,
    show: fn(f64) -> String,
    total: &str,
) {
    let mut cells = vec![name.to_owned()];
    match law {
        Some(law) => {
            cells.push(show(law.mean()));
            cells.extend([0.1, 0.5, 0.9, 0.99].map(|p| show(law.quantile(p))));
        }
        None => cells.extend(["-"; 5].map(str::to_owned)),
    }
    cells.push(total.to_owned());
    table.add_row(cells);
}

fn hosts(p: &Popularity) -> String {
    let (hosts, total) = (p.hosts(), p.total().max(1) as f64);
    let first = |n: u64| {
        let mut left = n;
        let mut sum = 0.0;
        for &(count, ranks) in &p.ranks {
            let taken = ranks.min(left);
            sum += count as f64 * taken as f64;
            left -= taken;
        }
        100.0 * sum / total
    };
    match hosts {
        0 => "none".into(),
        1 => "1 host".into(),
        n => format!(
            "{n} hosts, {:.0} % by the first, {:.0} % by the first ten",
            first(1),
            first(10)
        ),
    }
}

/// Bytes and sessions of the intervals as bars, with several intervals per character if there are many.
fn intervals(all: &[Interval]) -> String {
    let per = all.len().div_ceil(COLUMNS).max(1);
    let picture = |name: &str, what: fn(&Interval) -> u64| {
        let means: Vec<f64> = all
            .chunks(per)
            .map(|c| c.iter().map(|i| what(i) as f64).sum::<f64>() / c.len() as f64)
            .collect();
        let highest = means.iter().copied().fold(0.0, f64::max);
        let bars: String = means
            .iter()
            .map(|&m| match (m / highest.max(1e-300) * 8.0).ceil() as usize {
                0 => ' ',
                n => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][n.min(8) - 1],
            })
            .collect();
        let most = all.iter().map(what).max().unwrap_or(0);
        format!("{name}: at most {}\n|{bars}|", shortened(most as f64, ""))
    };
    format!(
        "{}\n{}",
        picture("TCP payload of an interval, bytes", |i| i.bytes),
        picture("sessions to play", |i| i.sessions)
    )
}

/// Three significant digits and a decimal prefix.
fn shortened(x: f64, unit: &str) -> String {
    let (scale, prefix) = match x {
        x if x >= 1e12 => (1e12, "T"),
        x if x >= 1e9 => (1e9, "G"),
        x if x >= 1e6 => (1e6, "M"),
        x if x >= 1e4 => (1e3, "k"),
        _ => return format!("{x:.0} {unit}").trim_end().into(),
    };
    format!("{} {prefix}{unit}", significant(x / scale))
}
