//! The errors as distributions, and what they make of sessions.

use super::claims::{Row, columns, row};
use super::{QUANTILES, SWEEPS};
use crate::{Axis, Estimate, Line, Picture, Section, Table, Unit};

/// The section, from the numbers of [`super::cells`].
pub fn section(numbers: &[Vec<f64>]) -> Section {
    Section {
        title: "Times of flow records (table 2)".to_owned(),
        what: "By how much records of a flow end later than its packets. The project's own metering keeps the time \
               of the last packet. What the paper's router did is not known; its numbers are those of a cache that \
               is swept every 0.9 s and gives what was used its own time, which is what is shown beside."
            .to_owned(),
        pictures: vec![distributions(numbers), inflation(numbers)],
        tables: vec![table(numbers)],
    }
}

fn axis(title: &str, unit: Unit, log: bool) -> Axis {
    Axis {
        title: title.to_owned(),
        unit,
        log,
    }
}

fn distributions(numbers: &[Vec<f64>]) -> Picture {
    let line = |(slot, (name, at)): (usize, (String, usize))| {
        let row = row(numbers, at)?;
        let point = |&(number, p): &(&str, f64)| Some((row.get(number)?, Estimate::exact(p)));
        Some(Line {
            name,
            slot: slot + 1,
            points: QUANTILES.iter().filter_map(point).collect(),
            measured: true,
        })
    };
    let columns = columns().into_iter().map(|c| (c.name, c.at));
    Picture {
        name: "end-times".to_owned(),
        title: "How late records end".to_owned(),
        caption: "Distribution function of the error over flows: one direction of a connection each. The paper's has \
                  its median at 0.46 s."
            .to_owned(),
        x: axis("record's end after the last packet", Unit::Seconds, false),
        y: axis("flows", Unit::Share, false),
        lines: columns.enumerate().filter_map(line).collect(),
    }
}

fn inflation(numbers: &[Vec<f64>]) -> Picture {
    let points = swept(numbers)
        .filter_map(|(late, row)| Some((late, Estimate::exact(row.over()?))))
        .collect();
    Picture {
        name: "session-inflation".to_owned(),
        title: "Sessions counted from the times of late records".to_owned(),
        caption: "By how much more seem active than by the packets, over how late records end in the mean."
            .to_owned(),
        x: axis("mean lateness", Unit::Seconds, true),
        y: axis("sessions too many", Unit::Share, false),
        lines: vec![Line {
            name: "swept cache".to_owned(),
            slot: 3,
            points,
            measured: true,
        }],
    }
}

/// The swept caches: how late records end in the mean, and the numbers.
fn swept(numbers: &[Vec<f64>]) -> impl Iterator<Item = (f64, Row<'_>)> {
    let rows = (1..SWEEPS.len()).filter_map(|i| row(numbers, i + 1));
    rows.filter_map(|r| Some((r.get("end_mean")?, r)))
}

fn table(numbers: &[Vec<f64>]) -> Table {
    let head = [
        "",
        "begin: mean",
        "median",
        "deviation",
        "end: mean",
        "median",
        "deviation",
        "sessions",
        "their bytes",
    ];
    let millis = |r: Option<f64>| r.map_or("–".to_owned(), |x| format!("{:.1} ms", x * 1e3));
    let percent = |r: Option<f64>| r.map_or("–".to_owned(), |x| format!("{:+.1} %", x * 100.0));
    let mut rows = vec![
        [
            "paper", "19 ms", "0 ms", "8 ms", "454 ms", "461 ms", "254 ms", "too many", "too many",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let named = |i: usize| match i {
        0 => "as metered".to_owned(),
        1 => "as metered, against payload".to_owned(),
        i => SWEEPS
            .get(i - 1)
            .map_or_else(String::new, |s| format!("swept every {s}")),
    };
    for i in 0..=SWEEPS.len() {
        let Some(r) = row(numbers, i) else { continue };
        let times = [
            "begin_mean",
            "begin_50",
            "begin_sd",
            "end_mean",
            "end_50",
            "end_sd",
        ];
        let mut cells = vec![named(i)];
        cells.extend(times.map(|n| millis(r.get(n))));
        cells.push(percent(r.over()));
        cells.push(percent(r.get("volume").map(|v| v - 1.0)));
        rows.push(cells);
    }
    Table {
        title: "Errors of the times, and what sessions counted from them come to".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows,
    }
}
