use std::io::Read;

use super::*;
use crate::sample;

fn of(picture: &str) -> Value {
    let mut data = sample::report(&["none", "poisson", "campus"]);
    for (condition, wait) in data.foregrounds[0].conditions.iter_mut().zip(1..) {
        let wait = f64::from(wait);
        condition.waterfall = vec![("handshake", wait), ("transmission", 2.0 * wait)];
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

#[test]
fn a_distribution_function_has_every_step_of_the_page() {
    let data = sample::report(&["none", "poisson", "campus"]);
    let steps: usize = data.foregrounds[0]
        .conditions
        .iter()
        .map(|c| c.steps.iter().filter(|s| s.0.is_finite()).count())
        .sum();
    let spec = of("cdf");
    let lines = rows(&spec).iter().filter(|r| r["y"].is_number()).count();
    assert_eq!(lines, steps);
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
