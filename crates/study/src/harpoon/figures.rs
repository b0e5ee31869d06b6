//! The paper's figures, of the original and its copies.

use super::cells::{COPIES, GAPS, OCTAVES, RANKS, SIZES};
use super::results::Results;
use super::run::{BIN, COARSE};
use crate::{Axis, Estimate, Line, Picture, Section, Table, Unit};

/// Copies in most pictures, by their place: 300 s and what Harpoon as released makes of the same records.
const SHOWN: [usize; 3] = [0, 4, 5];
/// Copies in the log-scale diagram: both intervals, with and without RTT.
const ENERGIES: [usize; 4] = [0, 1, 2, 3];

/// The sections of the study, over `whole` intervals.
pub fn sections(r: &Results<'_>, whole: usize) -> Vec<Section> {
    vec![
        Section {
            title: "Volumes over time (figures 6, 8, 9 and 10)".to_string(),
            what: "What crossed the link in each interval of 300 s, both directions, headers included; connections by \
                   their starts."
                .to_string(),
            pictures: vec![
                series(r, whole, "bytes", "bytes per interval", Unit::Bytes),
                series(r, whole, "flows", "connections per interval", Unit::Plain),
                series(r, whole, "packets", "packets per interval", Unit::Plain),
            ],
            tables: Vec::new(),
        },
        Section {
            title: "Sizes, gaps and popularity (figure 7)".to_string(),
            what: "As flow records of the copies show them, by the same arithmetic as the original's.".to_string(),
            pictures: vec![
                quantiles(r, &SIZES, "sizes", "size of a file from a server", Unit::Bytes),
                quantiles(r, &GAPS, "gaps", "from one connection of a session to the next", Unit::Seconds),
                popularity(r),
            ],
            tables: vec![means(r)],
        },
        Section {
            title: "Energy at every timescale (figure 11)".to_string(),
            what: "Wavelet energy of the bytes of both directions in bins of a millisecond. The original's round trips \
                   are 200 ms; \"no RTT\" copies have 0.4 ms."
                .to_string(),
            pictures: vec![diagram(r)],
            tables: Vec::new(),
        },
    ]
}

fn axis(title: &str, unit: Unit, log: bool) -> Axis {
    Axis {
        title: title.to_string(),
        unit,
        log,
    }
}

/// The original and copies, each number at its place.
fn lines(r: &Results<'_>, copies: &[usize], points: &[(f64, String)]) -> Vec<Line> {
    let whole = points
        .iter()
        .filter_map(|(x, name)| Some((*x, Estimate::exact(r.original(name)?))));
    let original = Line {
        name: "original".to_string(),
        slot: 0,
        points: whole.collect(),
        measured: true,
    };
    let copies = copies.iter().map(|&i| Line {
        name: COPIES[i].0.to_string(),
        slot: i + 1,
        points: points
            .iter()
            .filter_map(|(x, name)| Some((*x, r.copy(i, name)?)))
            .collect(),
        measured: true,
    });
    std::iter::once(original).chain(copies).collect()
}

fn series(r: &Results<'_>, whole: usize, name: &str, title: &str, unit: Unit) -> Picture {
    let points: Vec<(f64, String)> = (0..whole)
        .map(|i| (i as f64 * COARSE.as_secs_f64(), format!("{name}_{i}")))
        .collect();
    Picture {
        name: format!("{name}-in-time"),
        title: format!("{}{}", title[..1].to_uppercase(), &title[1..]),
        caption: "By the beginning of the interval.".to_string(),
        x: axis("time", Unit::Seconds, false),
        y: axis(title, unit, false),
        lines: lines(r, &SHOWN, &points),
    }
}

fn quantiles(r: &Results<'_>, of: &[(&str, f64)], name: &str, title: &str, unit: Unit) -> Picture {
    let points: Vec<(f64, String)> = of.iter().map(|q| (q.1, q.0.to_string())).collect();
    Picture {
        name: name.to_string(),
        title: format!("Quantiles: {title}"),
        caption: "The distribution function with its axes exchanged.".to_string(),
        x: axis("share below", Unit::Share, false),
        y: axis(title, unit, true),
        lines: lines(r, &SHOWN, &points),
    }
}

fn popularity(r: &Results<'_>) -> Picture {
    let points: Vec<(f64, String)> = (1..=RANKS)
        .map(|i| (i as f64, format!("host_{i}")))
        .collect();
    Picture {
        name: "popularity".to_string(),
        title: "Popularity of servers by rank".to_string(),
        caption: "Share of all sessions.".to_string(),
        x: axis("rank", Unit::Plain, true),
        y: axis("sessions", Unit::Share, true),
        lines: lines(r, &SHOWN, &points),
    }
}

fn diagram(r: &Results<'_>) -> Picture {
    let scale = |j: usize| BIN.as_secs_f64() * 2f64.powi(j as i32);
    let points: Vec<(f64, String)> = (1..=OCTAVES)
        .map(|j| (scale(j), format!("energy_{j}")))
        .collect();
    Picture {
        name: "log-scale-diagram".to_string(),
        title: "Log-scale diagram".to_string(),
        caption: "log2 of the mean square of the wavelet coefficients; one is a factor of two."
            .to_string(),
        x: axis("timescale", Unit::Seconds, true),
        y: axis("energy, octaves", Unit::Plain, false),
        lines: lines(r, &ENERGIES, &points),
    }
}

fn means(r: &Results<'_>) -> Table {
    let names = [
        ("connections", "flows", 1.0),
        ("wire bytes, MB", "bytes", 1e-6),
        ("packets", "packets", 1.0),
        ("mean packet, bytes", "packet_size", 1.0),
        ("mean file, bytes", "size_mean", 1.0),
        ("mean gap, s", "gap_mean", 1.0),
    ];
    let mut head = vec![String::new(), "original".to_string()];
    head.extend(COPIES.iter().map(|c| c.0.to_string()));
    let digits = |x: f64| {
        if x < 100.0 {
            format!("{x:.2}")
        } else {
            format!("{x:.0}")
        }
    };
    let shown = |x: Option<f64>, scale: f64| x.map_or("-".to_string(), |x| digits(x * scale));
    let row = |&(title, name, scale): &(&str, &str, f64)| {
        let mut row = vec![title.to_string(), shown(r.original(name), scale)];
        row.extend((0..COPIES.len()).map(|i| shown(r.copy(i, name).map(|e| e.value), scale)));
        row
    };
    Table {
        title: "Totals and means".to_string(),
        head,
        rows: names.iter().map(row).collect(),
    }
}
