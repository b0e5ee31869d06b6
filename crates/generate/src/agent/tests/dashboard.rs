//! Checks that the dashboard in `deploy` only uses metrics that agents export.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const DASHBOARD: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/grafana.json"
));

/// Names of the metrics on a page, each with its labels.
fn exported(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|l| !l.starts_with('#')) {
        let (name, rest) = line.split_once('{').unwrap();
        let (labels, value) = rest.split_once("} ").unwrap();
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        let labels = labels
            .split(',')
            .map(|l| l.split_once('=').unwrap().0.to_owned());
        all.entry(name.into()).or_default().extend(labels);
    }
    all
}

/// The identifier after each occurrence of `mark` in a text.
fn names(text: &str, mark: &str) -> Vec<String> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let after = text.split(mark).skip(1);
    after
        .map(|t| t.chars().take_while(|&c| part(c)).collect())
        .collect()
}

#[test]
fn every_metric_has_a_type_and_a_meaning_and_the_dashboard_shows_only_such() {
    let (client, server) = (Running::new(None), Running::new(None));
    let mut controller = Controller::new(&order(&[&client], &[&server], Trust::Loopback)).unwrap();
    controller.start().unwrap();
    until(|| done(&controller) > 0);
    let page = client.ask(Some(TOKEN), "GET", "/metrics", "").1;
    let exported = exported(&page);
    assert!(exported.len() > 20, "{page}");
    for name in exported.keys() {
        let line = |kind: &str| {
            let start = format!("# {kind} {name} ");
            let mut found = page.lines().filter_map(|l| l.strip_prefix(&start));
            let text = found.next().unwrap_or_else(|| panic!("{kind} of {name}"));
            assert_eq!(found.next(), None, "{kind} of {name} twice");
            text
        };
        assert!(
            line("HELP").len() > 8 && line("HELP").ends_with('.'),
            "{name}"
        );
        let counter = name.ends_with("_total");
        assert_eq!(
            line("TYPE"),
            if counter { "counter" } else { "gauge" },
            "{name}"
        );
    }
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    for key in ["title", "uid", "schemaVersion", "templating", "time"] {
        assert!(!dashboard[key].is_null(), "{key}");
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<&str> = variables
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    let mut ids = BTreeSet::new();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel:#}");
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24 && place("h") > 0 && panel["title"].is_string());
        for target in panel["targets"].as_array().unwrap() {
            let text = target["expr"].as_str().unwrap();
            let open = text.chars().filter(|c| *c == '(').count();
            assert_eq!(open, text.chars().filter(|c| *c == ')').count(), "{text}");
            let used = names(text, "swell_agent_");
            assert!(!used.is_empty(), "{text}");
            for name in used {
                let name = format!("swell_agent_{name}");
                let labels = exported
                    .get(&name)
                    .unwrap_or_else(|| panic!("{name} is not exported"));
                // Prometheus adds the `instance` label.
                let known = |l: &String| l == "instance" || labels.contains(l);
                let legend = target["legendFormat"].as_str().unwrap();
                assert!(names(legend, "{{").iter().all(known), "{legend}");
                assert!(text.contains("by (instance, part)") && labels.contains("part"));
                let rated = text.contains(&format!("rate({name}{{"));
                assert_eq!(rated, name.ends_with("_total"), "{text}");
                shown.insert(name);
            }
            for variable in names(text, "$") {
                let own = variables.contains(&variable.as_str());
                assert!(own || variable == "__rate_interval", "{variable}");
            }
        }
    }
    assert!(shown.len() > 12, "{shown:?}");
    controller.end();
}
