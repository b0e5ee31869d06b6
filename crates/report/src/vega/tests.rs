use std::io::Read;

use super::*;
use crate::chart::Canvas;
use crate::sample;

fn of(picture: &str) -> Value {
    let mut data = sample::report(&["none", "poisson", "campus"]);
    for (condition, wait) in data.foregrounds[0].conditions.iter_mut().zip(1..) {
        let wait = f64::from(wait);
        condition.waterfall.parts = vec![("handshake", wait), ("transmission", 2.0 * wait)];
    }
    let name = data.foregrounds[0].name.clone();
    crate::vega(&data, &name, picture).unwrap()
}

/// All rows of data below `spec`.
fn rows(spec: &Value) -> Vec<Value> {
    match spec {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value {
                Value::Array(rows) if key == "values" => rows.clone(),
                _ => rows(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(rows).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_picture_of_a_run_has_data_and_names_its_schema() {
    for picture in crate::VEGA_PICTURES {
        let spec = of(picture);
        assert_eq!(spec["$schema"], SCHEMA, "{picture}");
        let rows = rows(&spec);
        assert!(!rows.is_empty(), "{picture}");
        assert!(rows.iter().all(|r| r["series"] != Value::Null), "{picture}");
    }
}

#[test]
fn parts_of_a_whole_stand_on_each_other_in_their_order() {
    let spec = of("waterfall");
    assert_eq!(spec["encoding"]["y"]["stack"], "zero");
    let rows = rows(&spec);
    let own: Vec<_> = rows.iter().filter(|r| r["group"] == "campus").collect();
    let values: Vec<_> = own.iter().map(|r| (&r["order"], &r["value"])).collect();
    assert_eq!(values, [(&json!(0), &json!(3.0)), (&json!(1), &json!(6.0))]);
}

#[test]
fn a_page_holds_the_specifications_that_the_program_gives() {
    let data = sample::report(&["none", "poisson", "campus"]);
    let page = crate::page(&data);
    let name = &data.foregrounds[0].name;
    for (id, picture) in [
        ("f0-cdf", "cdf"),
        ("f0-slow", "slowdown"),
        ("f0-lsd-down", "scales"),
        ("f0-lsd-up", "scales-up"),
        ("f0-time", "time"),
        ("f0-time-0-up", "time-up"),
    ] {
        let (_, packed) = page
            .split_once(&format!("<figure id=\"{id}\" data-vega=\""))
            .unwrap();
        let packed = BASE64_STANDARD.decode(packed.split_once('"').unwrap().0);
        let mut text = String::new();
        let packed = packed.unwrap();
        let mut unpacked = flate2::read::ZlibDecoder::new(&packed[..]);
        unpacked.read_to_string(&mut text).unwrap();
        let spec: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(Some(spec), crate::vega(&data, name, picture), "{id}");
    }
    // The drawing of the network is not a chart.
    let without = page.matches("<figure id=\"network\">").count();
    assert_eq!(
        page.matches("<figure id=").count() - without,
        page.matches(" data-vega=").count()
    );
}

/// Thinned, the curve is nowhere further from the whole one than a step of the axis.
#[test]
fn a_distribution_function_has_the_steps_that_a_picture_shows() {
    let data = sample::report(&["none", "poisson", "campus"]);
    let spec = of("cdf");
    let rows = rows(&spec);
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let named = crate::parts::named(&data, &data.foregrounds[0], &[0, 1, 3]);
    let axis = crate::figures::cdf_chart(&named, "").x;
    for n in &named {
        let own = rows
            .iter()
            .filter(|r| r["series"] == n.name && r["y"].is_number());
        let kept: Vec<(f64, f64)> = own.map(|r| (number(r, "x"), number(r, "y"))).collect();
        let whole = &n.condition.steps;
        assert!(whole.len() > 3000 && kept.len() <= 2001, "{}", kept.len());
        assert_eq!(kept.last().map(|p| p.1), Some(1.0));
        let at = |steps: &[(f64, f64)], x: f64| {
            let below = steps.partition_point(|s| axis.at(s.0) <= axis.at(x));
            steps[..below].last().map_or(0.0, |s| s.1)
        };
        for &(x, y) in &kept {
            // Six digits of a value are less than another step.
            let room = (axis.hi - axis.lo) / 1900.0;
            assert!(
                at(whole, x + room) >= y - 1e-5 && at(whole, x * (1.0 - 1e-5)) <= y,
                "{x} {y}"
            );
        }
    }
}

/// A curve of named points has its intervals as rules; an area over one point could not be seen.
#[test]
fn intervals_of_named_points_are_rules() {
    let axis = || Axis::linear("x", Quantity::Plain, [0.0, 2.0].into_iter(), true);
    let chart = XyChart {
        title: String::new(),
        description: String::new(),
        x: axis(),
        y: axis(),
        curves: vec![Curve {
            name: "a".into(),
            note: String::new(),
            slot: 1,
            shape: Shape::Named,
            points: vec![(1.0, 1.0)],
            band: vec![(1.0, 0.5, 1.5)],
        }],
        marks: Vec::new(),
        link: String::new(),
    };
    let spec = chart.vega();
    assert_eq!(spec["layer"][0]["mark"]["type"], "rule");
}

#[test]
fn a_bound_is_told_from_an_estimate() {
    let mut data = sample::report(&["none", "campus"]);
    let slots = &mut data.foregrounds[0].conditions[1].slowdown;
    for (slot, [low, high]) in slots.iter_mut().zip([[0.0, 1.5], [1.5, f64::INFINITY]]) {
        let value = 1.5;
        *slot = Some(crate::data::Interval { value, low, high });
    }
    let name = data.foregrounds[0].name.clone();
    let spec = crate::vega(&data, &name, "slowdown").unwrap();
    let bounds: Vec<_> = rows(&spec)
        .iter()
        .map(|r| r.get("bound").cloned())
        .collect();
    assert_eq!(
        bounds,
        [Some(json!("at most")), Some(json!("at least")), None, None]
    );
    let canvas = crate::chart::Canvas::file(720.0, 400.0);
    let svg = crate::slowdown_svg(&data, &name, &canvas).unwrap();
    let drawn = svg.replace('\u{a0}', " ");
    assert!(
        drawn.contains("p5: ≤ 1.50×\"") && drawn.contains("median: ≥ 1.50×\""),
        "{svg}"
    );
    assert_eq!(svg.matches("class=\"pale f").count(), 2);
}

#[test]
fn slowdowns_are_the_numbers_of_the_page_with_their_intervals() {
    let data = sample::report(&["none", "poisson", "campus"]);
    let median = data.foregrounds[0].conditions[2].slowdown[1].unwrap();
    let spec = of("slowdown");
    let row = rows(&spec)
        .into_iter()
        .find(|r| r["series"] == "campus" && r["group"] == "median")
        .unwrap();
    assert_eq!(row["value"], median.value);
    assert_eq!(row["low"], median.low);
    assert_eq!(row["high"], median.high);
}

#[test]
fn an_interval_without_end_is_a_bar_without_whisker() {
    let mut data = sample::report(&["none", "campus"]);
    let slot = &mut data.foregrounds[0].conditions[1].slowdown[3];
    if let Some(interval) = slot {
        interval.high = f64::INFINITY;
    }
    let name = data.foregrounds[0].name.clone();
    let spec = crate::vega(&data, &name, "slowdown").unwrap();
    let row = rows(&spec).into_iter().find(|r| r["group"] == "p95");
    assert_eq!(row.unwrap().get("high"), None);
}

#[test]
fn names_that_are_not_there_are_none() {
    let data = sample::report(&["none", "campus"]);
    assert_eq!(crate::vega(&data, "nobody", "cdf"), None);
    let name = data.foregrounds[0].name.clone();
    assert_eq!(crate::vega(&data, &name, "nothing"), None);
}

#[test]
fn without_requests_the_answer_is_the_measures_and_empty_pictures_are_none() {
    let mut data = sample::report(&["none", "poisson", "campus"]);
    let name = data.foregrounds[0].name.clone();
    assert_eq!(crate::answer_picture(&data, &name), "cdf");
    for condition in &mut data.foregrounds[0].conditions {
        *condition = crate::data::Condition::default();
    }
    assert_eq!(crate::answer_picture(&data, &name), "effects");
    let canvas = Canvas::file(700.0, 380.0);
    let drawn = crate::effects_svg(&data, &name, &canvas).unwrap();
    assert!(drawn.contains("What was measured"));
    assert!(!rows(&crate::vega(&data, &name, "effects").unwrap()).is_empty());
    let page = crate::page(&data);
    assert!(page.contains("id=\"f0-effects\"") && !page.contains("No request finished"));
    assert_eq!(crate::cdf_svg(&data, &name, &canvas), None);
    assert_eq!(crate::slowdown_svg(&data, &name, &canvas), None);
    assert_eq!(
        crate::lsd_svg(&data, &name, swell_base::Direction::Down, &canvas),
        None
    );
    for picture in ["cdf", "slowdown", "scales"] {
        assert_eq!(crate::vega(&data, &name, picture), None, "{picture}");
    }
    // Nothing compared: nothing to draw, and the page has no such figure.
    data.foregrounds[0].measures.clear();
    assert_eq!(crate::effects_svg(&data, &name, &canvas), None);
    assert_eq!(crate::answer_picture(&data, &name), "cdf");
}
