//! What a model brings back, beside its trace.

use std::collections::BTreeMap;

use swell_experiment::fidelity::{Fidelity, Playback, Row};

use super::text::{list, wrapped};

/// What precedes the timescale in the name of an energy, left to right and right to left.
const ENERGIES: [&str; 2] = [
    "log2 energy of bytes left to right at ",
    "log2 energy of bytes right to left at ",
];

const RULES: &str = "off: relative difference of the mean over the seeds. A volume is met within 5 %, or inside the \
    trace's own 95 % bootstrap interval where that is wider (at most 20 %, and only with 10 sessions or more); a median \
    within 10 %. Distances are from the trace; those of energies are met up to 1.5 dB, those of distributions up to 0.1 octaves, of what hosts without round trips \
    borrowed up to 0.5. seeds: minimum and maximum over the seeds; of energies over all octaves, of each seed's \
    distance from the mean of the seeds, and not from the trace.";

const OCTAVES: &str = "Energies are log2 of squared bytes; off: the difference in octaves (1 = a factor of two). An \
    energy is met where the mean over the seeds is within 1.5 dB, half an octave. left of the tapped link is the \
    inside, where most clients are; right the outside.";

/// Tables and their rules: quantities, then energies with a row per timescale.
pub(crate) fn fidelity(fidelity: &Fidelity, playback: &Playback) -> String {
    let missed = fidelity.rows.iter().filter(|r| !r.met).count();
    let dropped: Vec<&str> = (playback.knobs.independent.iter())
        .map(|d| d.name())
        .collect();
    let mut text = wrapped(&format!(
        "Model `{}` played with seeds 1 to {} over {}{}: {} of {} rows met.",
        fidelity.model,
        fidelity.seeds,
        playback.rate,
        if dropped.is_empty() {
            String::new()
        } else {
            format!(", dropping {}", dropped.join(", "))
        },
        fidelity.rows.len() - missed,
        fidelity.rows.len(),
    ));
    text += "\n\n";
    let mut quantities = list(&["quantity", "trace", "replayed", "off", "seeds", "met"]);
    // By timescale, in their order.
    let mut energies: Vec<(&str, [Option<&Row>; 2])> = Vec::new();
    let mut places = BTreeMap::new();
    for r in &fidelity.rows {
        let energy = (0..2).find_map(|d| Some((d, r.quantity.strip_prefix(ENERGIES[d])?)));
        if let Some((direction, timescale)) = energy {
            let place = *places.entry(timescale).or_insert_with(|| {
                energies.push((timescale, [None; 2]));
                energies.len() - 1
            });
            energies[place].1[direction] = Some(r);
            continue;
        }
        quantities.add_row([
            name_lines(&r.quantity),
            if r.trace.is_nan() {
                "-".into()
            } else {
                number(r.trace)
            },
            number(r.regenerated),
            off(r),
            format!("{} to {}", number(r.spread[0]), number(r.spread[1])),
            met(r).into(),
        ]);
    }
    text += &format!("{quantities}\n{}\n", wrapped(RULES));
    if !energies.is_empty() {
        let mut table = list(&[
            "energy at",
            "left to right:\ntrace",
            "replayed",
            "off",
            "met",
            "right to left:\ntrace",
            "replayed",
            "off",
            "met",
        ]);
        for (timescale, rows) in energies {
            let cells = rows.iter().flat_map(|row| match row {
                Some(r) => [
                    number(r.trace),
                    number(r.regenerated),
                    off(r),
                    met(r).into(),
                ],
                None => [const { String::new() }; 4],
            });
            table.add_row(std::iter::once(timescale.to_owned()).chain(cells));
        }
        text += &format!("\n{table}\n{}\n", wrapped(OCTAVES));
    }
    text.pop();
    text
}

/// The lines of a name that leaves room for five columns of numbers.
fn name_lines(name: &str) -> String {
    const MOST: usize = 25;
    let mut lines = vec![String::new()];
    for word in name.split(' ') {
        let line = lines.last_mut().expect("there is always a last line");
        match line.is_empty() {
            true => line.push_str(word),
            false if line.chars().count() + 1 + word.chars().count() <= MOST => {
                line.push(' ');
                line.push_str(word);
            }
            false => lines.push(format!(" {word}")),
        }
    }
    lines.join("\n")
}

fn met(r: &Row) -> &'static str {
    if r.met { "yes" } else { "NO" }
}

fn off(r: &Row) -> String {
    match r.bar {
        Some(_) if r.trace != 0.0 => format!("{:+.1} %", 100.0 * (r.regenerated / r.trace - 1.0)),
        Some(_) => String::new(),
        None if r.limit.is_some() => String::new(),
        None => format!("{:+.2}", r.regenerated - r.trace),
    }
}

/// Four significant digits, without an exponent if possible.
fn number(x: f64) -> String {
    if x.is_infinite() {
        // A quantity of which the runs have no value.
        return "none".into();
    }
    let magnitude = if x == 0.0 {
        0
    } else {
        x.abs().log10().floor() as i32
    };
    match magnitude {
        9.. => format!("{:.2}G", x / 1e9),
        6..=8 => format!("{:.2}M", x / 1e6),
        4..=5 => format!("{:.1}k", x / 1e3),
        0..=3 => format!("{:.*}", (3 - magnitude) as usize, x),
        -6..=-1 => format!("{:.*}", (3 - magnitude) as usize, x),
        _ => format!("{x:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(quantity: &str, bar: Option<f64>, limit: Option<f64>, values: [f64; 2]) -> Row {
        Row {
            quantity: quantity.into(),
            trace: values[0],
            regenerated: values[1],
            spread: [1_234_567.0, 12_345_678_901.0],
            limit,
            interval: None,
            bar,
            met: false,
        }
    }

    #[test]
    fn tables_fit_a_terminal_and_have_every_row() {
        let longest = "distance of client-side RTT, hosts without samples [octaves]";
        let mut rows = vec![
            row(longest, None, Some(0.5), [f64::NAN, 17.77]),
            row("packets", Some(0.05), None, [123_456.0, 17.77]),
        ];
        for prefix in ENERGIES {
            for timescale in ["0.002 s", "0.004 s", "1048.576 s"] {
                let name = format!("{prefix}{timescale}");
                rows.push(row(&name, None, None, [25.55, 17.77]));
            }
        }
        rows.pop();
        let all = Fidelity {
            model: "m".into(),
            seeds: 10,
            rows,
        };
        let text = fidelity(&all, &Playback::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert_eq!(text.matches("17.77").count(), all.rows.len(), "{text}");
    }
}
