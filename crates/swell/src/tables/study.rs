//! The figures of a study as tables.

use swell_study::{Axis, Estimate, Picture, Unit};

use super::list;

/// The points of a picture: a row for each place on the axis, a column for each line, with 95 % intervals. Reference
/// curves, which nobody measured, are left out.
pub(crate) fn picture(picture: &Picture) -> String {
    let lines = || picture.lines.iter().filter(|line| line.measured);
    let mut header = vec![format!("{}{}", picture.x.title, unit(&picture.x).0)];
    header.extend(lines().map(|line| line.name.clone()));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = list(&header);
    let mut places: Vec<f64> = Vec::new();
    for &(x, _) in lines().flat_map(|line| &line.points) {
        if !places.contains(&x) {
            places.push(x);
        }
    }
    places.sort_by(f64::total_cmp);
    for place in places {
        let mut row = vec![number(place, &picture.x)];
        row.extend(lines().map(|line| {
            let own = line.points.iter().find(|p| p.0 == place);
            own.map_or_else(|| "-".to_owned(), |p| estimate(&p.1, &picture.y))
        }));
        table.add_row(row);
    }
    format!(
        "{}{}; in brackets 95 % intervals\n{table}",
        picture.title,
        unit(&picture.y).0
    )
}

/// A mean with its interval.
fn estimate(e: &Estimate, axis: &Axis) -> String {
    match e.interval {
        Some([low, high]) => format!(
            "{} ({} to {})",
            number(e.value, axis),
            number(low, axis),
            number(high, axis)
        ),
        None => number(e.value, axis),
    }
}

/// The unit in which numbers of an axis are printed, after its title, and how many of it a unit of the axis is.
fn unit(axis: &Axis) -> (&'static str, f64) {
    match axis.unit {
        Unit::Plain => ("", 1.0),
        Unit::Share => (", %", 100.0),
        Unit::Seconds => (", ms", 1e3),
        Unit::Bytes => (", kB", 1e-3),
        Unit::BitsPerSecond => (", Mbit/s", 1e-6),
    }
}

/// A number in the unit that the title of the table names: three significant digits.
fn number(x: f64, axis: &Axis) -> String {
    let x = x * unit(axis).1;
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let decimals = (2.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    match x == x.trunc() {
        true => format!("{x:.0}"),
        false => format!("{x:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use swell_study::Line;

    use super::*;

    #[test]
    fn a_picture_has_a_row_for_each_place_and_its_intervals() {
        let axis = |title: &str, unit| Axis {
            title: title.into(),
            unit,
            log: false,
        };
        let line = |name: &str, points: &[(f64, &[f64])]| Line {
            name: name.into(),
            slot: 1,
            points: points
                .iter()
                .map(|(x, values)| (*x, Estimate::of(values.iter().copied()).unwrap()))
                .collect(),
            measured: true,
        };
        let reference = Line {
            measured: false,
            ..line("reference", &[(0.001, &[1.0]), (0.002, &[1.0])])
        };
        let text = picture(&Picture {
            name: "wait".into(),
            title: "Wait".into(),
            caption: String::new(),
            x: axis("timescale", Unit::Seconds),
            y: axis("wait", Unit::Seconds),
            lines: vec![
                line(
                    "voice",
                    &[(0.016, &[0.002]), (0.004, &[0.001, 0.001, 0.001])],
                ),
                line("web", &[(0.016, &[0.010, 0.014])]),
                reference,
            ],
        });
        let rows: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(rows[0], "Wait, ms; in brackets 95 % intervals");
        assert!(text.contains("timescale, ms") && !text.contains("reference"));
        assert!(!rows.iter().any(|r| r.starts_with("1 ")));
        let row = |begins: &str| {
            let own = rows
                .iter()
                .find(|r| r.split_whitespace().next() == Some(begins));
            own.map(|r| r.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(row("4").as_deref(), Some("4 1 (1 to 1) -"));
        // Two values 4 ms apart: 12.706 standard errors of 2 ms.
        assert_eq!(row("16").as_deref(), Some("16 2 12 (-13.4 to 37.4)"));
    }
}
