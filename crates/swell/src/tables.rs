//! Tables for terminals, 80 columns wide, without colour.

use std::collections::BTreeMap;

use groundswell::model::{AnyModel, mean_bps};
use swell_experiment::Results;
use swell_experiment::file::File;
use swell_experiment::made_up::MadeUp;
use swell_report::Quantity;
use swell_traffic::Model;
use swell_verdict::{FEW, ForegroundVerdict, Known, Quantile};

#[cfg(feature = "agents")]
pub(crate) mod agents;
pub(crate) mod compare;
mod fidelity;
pub(crate) mod flows;
mod links;
mod loads;
pub(crate) mod study;
mod text;
pub(crate) mod top;
pub(crate) mod under;

use compare::judgement;
pub(crate) use fidelity::fidelity;
pub(crate) use links::coherence;
use loads::loads;
pub(crate) use text::wrapped;
use text::{list, mega, paragraph, ratio, shortened, significant, table};

/// Explains left and right, for tables about directions on a link.
const SIDES: &str =
    "left of the tapped link is the inside, where most clients are; right the outside";

/// The tables of a foreground. Made-up runs are labelled in the table itself, because tables are copied and pasted.
pub(crate) fn of_run(results: &Results, v: &ForegroundVerdict) -> String {
    let mark = match &*results.manifest.backend {
        MadeUp::NAME => "MADE UP: ",
        _ => "",
    };
    let table = match is_silent(&results.experiment, v) {
        true => carried(&results.experiment, v),
        false => slowdowns(&results.experiment, v),
    };
    let nothing_compared = v.backgrounds.iter().all(|b| b.compared().next().is_none());
    let alone = match nothing_compared {
        true => levels(results, v),
        false => String::new(),
    };
    format!("{mark}{table}{alone}")
}

/// Whether a foreground is of kind `none`: it shows what the background does by itself, and nothing is asked of it.
pub(crate) fn is_silent(experiment: &File, v: &ForegroundVerdict) -> bool {
    let mut all = experiment.foreground.iter();
    all.any(|f| f.name() == v.foreground && f.is_none())
}

/// Percentiles and slowdowns of a foreground, a row per background.
fn slowdowns(file: &File, v: &ForegroundVerdict) -> String {
    if v.backgrounds.iter().all(|b| b.requests == 0) {
        return carried(file, v);
    }
    let mut table = table(&[
        "background",
        "Mbit/s",
        "requests",
        "p5",
        "p50",
        "p90",
        "p95",
    ]);
    for b in &v.backgrounds {
        let mut requests = b.requests.to_string();
        for (n, what) in [(b.unfinished, "unfinished"), (b.failed, "failed")] {
            if n > 0 {
                requests += &format!("\n{n} {what}");
            }
        }
        let mut row = vec![shortened(&b.background, 12), loads(file, b), requests];
        // Few requests allow no statement beyond the median.
        let told = |q: &Quantile| q.p == 0.5 || b.requests >= FEW;
        row.extend(b.quantiles.iter().map(|q| match told(q) {
            true => quantile(q),
            false => "-".into(),
        }));
        table.add_row(row);
    }
    format!(
        "{}: time to the last byte, slowdown (95 % interval); Mbit/s carried down\n{table}{}",
        v.foreground,
        measures(v)
    )
}

/// The table of rates, for a foreground without requests.
fn carried(file: &File, v: &ForegroundVerdict) -> String {
    let mut text = list(&["background", "Mbit/s"]);
    for b in &v.backgrounds {
        text.add_row([shortened(&b.background, 12), loads(file, b)]);
    }
    format!(
        "{}: Mbit/s carried down\n{text}{}",
        v.foreground,
        measures(v)
    )
}

/// The table of measures other than request times; empty if there are none.
fn measures(v: &ForegroundVerdict) -> String {
    let mut text = list(&[
        "measure",
        "background",
        "without",
        "with",
        "ratio (95 % interval)",
    ]);
    let mut rows = 0;
    for b in &v.backgrounds {
        for j in b.compared().filter(|j| j.measure != "time") {
            let [name, without, with, factor] = judgement(j);
            let background = shortened(&b.background, 12);
            text.add_row(vec![
                shortened(&name, 24),
                background,
                without,
                with,
                factor,
            ]);
            rows += 1;
        }
    }
    match rows {
        0 => String::new(),
        _ => format!("\n{text}"),
    }
}

/// The table of measures other than request times where nothing is compared; empty if there are none.
fn levels(results: &Results, v: &ForegroundVerdict) -> String {
    let mut text = list(&["measure", "background", "value"]);
    let mut rows = 0;
    for (background, judged) in swell_verdict::levels(results, &v.foreground) {
        for j in judged.iter().filter(|j| j.measure != "time") {
            let [name, value, ..] = judgement(j);
            text.add_row(vec![
                shortened(&name, 24),
                shortened(&background, 12),
                value,
            ]);
            rows += 1;
        }
    }
    match rows {
        0 => String::new(),
        _ => format!("\n{text}"),
    }
}

fn quantile(q: &Quantile) -> String {
    let mut text = q.seconds.map_or_else(
        || "unknown".into(),
        |e| match e.value {
            // Fewer than two digits would be left of the seconds.
            x if x > 0.0 && x < 0.01 => Quantity::Duration.show(x, 3).replace('\u{a0}', " "),
            x => format!("{} s", significant(x)),
        },
    );
    if let Some(s) = q.slowdown {
        text += &match Known::of(&s) {
            Known::AtLeast(low) => format!("\nx >= {}", ratio(low)),
            Known::AtMost(high) => format!("\nx <= {}", ratio(high)),
            Known::Value => format!("\nx {}", ratio(s.value)),
            Known::Interval => format!(
                "\nx {}\n({}-{})",
                ratio(s.value),
                ratio(s.low),
                ratio(s.high)
            ),
        };
    }
    text
}

/// The answers for a foreground: a paragraph per question, with a line per background if there are many.
pub(crate) fn answers(v: &ForegroundVerdict) -> String {
    v.paragraphs.iter().map(paragraph).collect()
}

/// The bundled models.
pub(crate) fn models(listed: &[(&str, Model)]) -> String {
    let mut table = list(&[
        "model",
        "seconds",
        "Mbit/s\nto the right",
        "Mbit/s\nto the left",
        "sessions",
    ]);
    for (name, model) in listed {
        let [right, left] = mean_bps(model);
        table.add_row([
            (*name).to_owned(),
            format!("{:.0}", model.duration.as_secs_f64()),
            mega(right),
            mega(left),
            model.sessions.len().to_string(),
        ]);
    }
    let notes: Vec<String> = listed
        .iter()
        .filter_map(|(name, m)| {
            let note = m.provenance.note.trim_end_matches('.').to_owned();
            let parts = [note, certificate(m).unwrap_or_default()];
            let parts: Vec<String> = parts.into_iter().filter(|p| !p.is_empty()).collect();
            (!parts.is_empty()).then(|| wrapped(&format!("{name}: {}", parts.join("; "))))
        })
        .collect();
    format!("{table}\n{SIDES}\n\n{}", notes.join("\n"))
}

/// The table of characteristics that distinguish the bundled models.
pub(crate) fn bench(listed: &[(&str, Model)]) -> String {
    let mut table = list(&[
        "model",
        "Mbit/s\nright, left",
        "dB/octave",
        "RTT, ms\n10, 50, 90 %",
        "elastic",
        "fidelity",
    ]);
    for (name, model) in listed {
        let c = groundswell::model::character(model);
        let [right, left] = c.mean_bps;
        let slope = c.energy_slope_db.map(|s| match c.played {
            true => format!("({s:.1})"),
            false => format!("{s:.1}"),
        });
        let certificate = model.provenance.certificate.as_ref();
        let compared = certificate
            .map(|by| format!("{} of {}", by.met, by.rows))
            .or(c
                .of_target
                .map(|[up, down]| format!("{:.0}, {:.0} %", up * 100.0, down * 100.0)));
        table.add_row([
            (*name).to_owned(),
            format!("{}, {}", mega(right), mega(left)),
            slope.unwrap_or_else(|| "–".to_owned()),
            c.rtt_s.map_or("–".to_owned(), |q| {
                q.map(|s| format!("{:.0}", s * 1e3)).join(", ")
            }),
            format!("{:.0} %", c.elasticity * 100.0),
            compared.unwrap_or_else(|| "made".to_owned()),
        ]);
    }
    let key = wrapped(
        "dB/octave: how fast the energy of the larger direction rises from 8 ms to 1 s; 0 is Poisson. In parentheses: \
         there was no trace, and rates and energy are those of what is played. elastic: bytes of TCP, which wait for \
         congestion. fidelity: quantities of the trace that come back; for a stand-in the rates that it plays, in % of the \
         published ones. made: neither is known. –: too little traffic, or no TCP.",
    );
    format!("{table}\n{SIDES}\n{key}")
}

/// Summary of a model: totals, then classes.
pub(crate) fn model(model: &Model) -> String {
    let rate = mean_bps(model);
    let t = &model.totals;
    let lasts = match model.has_duration() {
        true => format!(
            "{:.1} s; {} Mbit/s to the right, {} Mbit/s to the left",
            model.duration.as_secs_f64(),
            mega(rate[0]),
            mega(rate[1])
        ),
        false => format!(
            "no duration, so no rates; {} bytes to the right, {} bytes to the left",
            t.bytes[0], t.bytes[1]
        ),
    };
    let mut text = format!(
        "{}: {lasts}\n\
         {SIDES}\n\
         {} TCP connections ({} with handshake), {} UDP flows\n\
         {} sessions kept, {} client and {} server paths, {} packets not modelled\n",
        model.name,
        t.tcp_connections,
        t.tcp_handshakes,
        t.udp_flows,
        model.sessions.len(),
        model.client_paths.len(),
        model.server_paths.len(),
        t.unmodelled_packets,
    );
    let mut by_class: BTreeMap<u32, (f64, f64, [f64; 2])> = BTreeMap::new();
    for s in &model.sessions {
        let sums = by_class.entry(s.class).or_default();
        let connections: usize = s.groups.iter().map(|g| g.connections.len()).sum();
        let bytes = s.bytes();
        sums.0 += s.weight;
        sums.1 += s.weight * connections as f64;
        sums.2[0] += s.weight * bytes[0] as f64;
        sums.2[1] += s.weight * bytes[1] as f64;
    }
    let mut table = list(&[
        "class",
        "sessions",
        "connections",
        "MB to servers",
        "MB to clients",
    ]);
    let mut rows: Vec<_> = by_class.into_iter().collect();
    rows.sort_by(|a, b| (b.1.2[0] + b.1.2[1]).total_cmp(&(a.1.2[0] + a.1.2[1])));
    for (class, (sessions, connections, [up, down])) in rows {
        let name = model.classes.get(class as usize).map_or("?", |c| &c.name);
        table.add_row([
            shortened(name, 24),
            format!("{sessions:.0}"),
            format!("{connections:.0}"),
            mega(up),
            mega(down),
        ]);
    }
    text += &table.to_string();
    text += "\n";
    if let Some(fidelity) = certificate(model) {
        text += &wrapped(&fidelity);
        text += "\n";
    }
    text += &wrapped(&reveals(model));
    text
}

/// The model's fidelity certificate in a sentence.
fn certificate(model: &Model) -> Option<String> {
    let c = model.provenance.certificate.as_ref()?;
    let halves = c
        .halves
        .map(|h| h.map_or("?".into(), |h| format!("{h:.1}")));
    let list = |of: &[(String, f64)], say: &dyn Fn(f64) -> String| {
        let said: Vec<String> = of
            .iter()
            .map(|(name, x)| format!("{name} {}", say(*x)))
            .collect();
        said.join(", ")
    };
    let mut text = format!(
        "fidelity ({}, {} seeds): {} of {} quantities met; energies {:.1} and {:.1} dB off, halves of the trace {} and {}",
        c.made_by, c.seeds, c.met, c.rows, c.energy[0], c.energy[1], halves[0], halves[1]
    );
    if !c.w1.is_empty() {
        text += &format!("; off by octaves: {}", list(&c.w1, &|x| format!("{x:.2}")));
    }
    text += &format!(
        "; {}",
        list(&c.counts, &|x| format!("{:+.1} %", 100.0 * (x - 1.0)))
    );
    Some(text)
}

/// What a model reveals about its trace, in sentences.
fn reveals(model: &Model) -> String {
    if let Some(epsilon) = model.provenance.private {
        return format!(
            "reveals: histograms with noise. Whether any one session was in the trace changes the odds of this model by \
             a factor of {:.3} at most (epsilon {epsilon})",
            epsilon.exp()
        );
    }
    let r = model.reveals();
    format!(
        "reveals: no addresses and no content, but sizes to the byte and pauses to the microsecond, in their order. \
         {:.0} % of the sessions and {:.0} % of the TCP exchanges have sizes that no other has: who has seen one \
         elsewhere finds it here. `swell learn --private EPSILON` hides sessions",
        100.0 * r.sessions,
        100.0 * r.exchanges
    )
}

/// Summary of a model of either kind.
pub(crate) fn any_model(any: &AnyModel) -> String {
    match any {
        AnyModel::Packets(m) => model(m),
        AnyModel::Flows(m) => flows::model(m),
    }
}

#[cfg(test)]
mod tests {
    use super::text::{WIDTH, indented};
    use super::*;

    #[test]
    fn no_number_is_rounded_to_nothing() {
        let shown = |seconds: f64, slowdown: f64| {
            let [seconds, slowdown] = [seconds, slowdown].map(|value| {
                Some(swell_stats::Estimate {
                    value,
                    low: value,
                    high: value,
                    level: 0.95,
                    replications: 5,
                })
            });
            quantile(&Quantile {
                p: 0.5,
                seconds,
                at_least: None,
                slowdown,
            })
        };
        assert!(shown(2.34e-4, 1.0).starts_with("234 µs\n"));
        assert!(shown(0.00234, 1.0).starts_with("2.34 ms\n"));
        assert!(shown(0.0234, 1.0).starts_with("0.023 s\n"));
        assert!(shown(0.0, 1.0).starts_with("0.000 s\n"));
        assert!(
            shown(1.0, 0.0021).contains("x 2e-3"),
            "{}",
            shown(1.0, 0.0021)
        );
        assert_eq!(significant(2.1e-4), "2e-4");
    }

    #[test]
    fn lines_keep_to_80_columns_and_go_on_indented() {
        let text = indented(&"word ".repeat(40), "  ", "    ");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|l| l.chars().count() <= WIDTH), "{text}");
        assert!(lines[0].starts_with("  word") && lines[1].starts_with("    word"));
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(wrapped("two words"), "two words");
    }
}
