//! The figures of a study as tables.

use swell_study::{Axis, Estimate, Picture, Unit};

use super::list;

/// The points of a picture: a row for each place on the axis, a column for each line, with 95 % intervals.
pub(crate) fn picture(picture: &Picture) -> String {
    let mut header = vec![picture.x.title.clone()];
    header.extend(picture.lines.iter().map(|line| line.name.clone()));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = list(&header);
    let mut places: Vec<f64> = Vec::new();
    for &(x, _) in picture.lines.iter().flat_map(|line| &line.points) {
        if !places.contains(&x) {
            places.push(x);
        }
    }
    places.sort_by(f64::total_cmp);
    for place in places {
        let mut row = vec![number(place, &picture.x)];
        row.extend(picture.lines.iter().map(|line| {
            let own = line.points.iter().find(|p| p.0 == place);
            own.map_or_else(|| "-".to_owned(), |p| estimate(&p.1, &picture.y))
        }));
        table.add_row(row);
    }
    let unit = match picture.y.unit {
        Unit::Plain => String::new(),
        Unit::Share => ", %".to_owned(),
        Unit::Seconds => ", ms".to_owned(),
        Unit::Bytes => ", kB".to_owned(),
        Unit::BitsPerSecond => ", Mbit/s".to_owned(),
    };
    format!(
        "{}{unit}; in brackets 95 % intervals\n{table}",
        picture.title
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

/// A number in the unit that the title of the table names: three significant digits.
fn number(x: f64, axis: &Axis) -> String {
    let scale = match axis.unit {
        Unit::Plain => 1.0,
        Unit::Share => 100.0,
        Unit::Seconds | Unit::Bytes => match axis.unit {
            Unit::Seconds => 1e3,
            _ => 1e-3,
        },
        Unit::BitsPerSecond => 1e-6,
    };
    let x = x * scale;
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
        let text = picture(&Picture {
            name: "wait".into(),
            title: "Wait".into(),
            caption: String::new(),
            x: axis("timescale, ms", Unit::Plain),
            y: axis("wait", Unit::Seconds),
            lines: vec![
                line("voice", &[(16.0, &[0.002]), (4.0, &[0.001, 0.001, 0.001])]),
                line("web", &[(16.0, &[0.010, 0.014])]),
            ],
        });
        let rows: Vec<&str> = text.lines().map(str::trim).collect();
        assert_eq!(rows[0], "Wait, ms; in brackets 95 % intervals");
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
