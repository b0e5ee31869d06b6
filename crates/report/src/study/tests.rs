use super::*;
use swell_study::{Entry, Estimate, Line, Section};

fn study() -> Study {
    let point = |x: f64| (x, Estimate::known(x / 10.0, 0.01, 5));
    Study {
        name: "made-up".into(),
        title: "A & B".into(),
        ledgers: vec![Ledger {
            title: "Claims".into(),
            columns: vec!["then".into(), "now".into()],
            entries: vec![Entry {
                id: "X1".into(),
                claim: "more < less".into(),
                paper: "> 50 %".into(),
                rule: "above".into(),
                findings: vec![
                    Finding {
                        verdict: Verdict::Holds,
                        tentative: false,
                        value: "+60 %".into(),
                        detail: "at M = 3".into(),
                        measured: None,
                        reference: "+61 %".into(),
                        reference_verdict: Some(Verdict::InPart),
                        pictures: vec!["one".into()],
                    },
                    Finding::not_tested(),
                ],
            }],
        }],
        sections: vec![Section {
            title: "Pictures".into(),
            pictures: vec![Picture {
                name: "one".into(),
                title: "One".into(),
                caption: "What it is.".into(),
                x: swell_study::Axis {
                    title: "clients".into(),
                    unit: Unit::Plain,
                    log: false,
                },
                y: swell_study::Axis {
                    title: "loss".into(),
                    unit: Unit::Share,
                    log: false,
                },
                lines: vec![Line {
                    name: "TCP".into(),
                    slot: 1,
                    points: vec![point(1.0), point(2.0), point(3.0)],
                    measured: true,
                }],
                bars: Vec::new(),
                heatmap: None,
            }],
            ..Section::default()
        }],
        command: "swell study made-up".into(),
        reference: "other".into(),
        ..Study::default()
    }
}

#[test]
fn the_headline_counts_the_claims_of_all_ledgers() {
    let mut study = study();
    let mut second = study.ledgers[0].clone();
    second.columns = vec!["now".into(), "later".into()];
    second.entries[0].rule = String::new();
    second.entries[0].findings[1].verdict = Verdict::DoesNotHold;
    study.ledgers.push(second);
    assert_eq!(
        sentences(&study),
        [
            "then: 1 of 1 claims hold, 0 in part, 0 not. now: 1 of 2 claims hold, 0 in part, 0 not, 1 not tested. \
          later: 0 of 1 claims hold, 0 in part, 1 not."
        ]
    );
    let page = study_html(&study);
    assert!(
        !page.contains("Rule: .") && page.contains("No rule: nothing here could answer it yet.")
    );
    study.ledgers.clear();
    assert!(sentences(&study).is_empty());
}

#[test]
fn the_page_has_the_ledger_first_and_every_number() {
    let page = study_html(&study());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("then: 1 of 1 claims hold") < at("X1"));
    let mut tentative = study();
    tentative.ledgers[0].entries[0].findings[0].tentative = true;
    assert!(study_html(&tentative).contains("then: 1 of 1 claims hold tentatively, 0 in part"));
    assert!(at("more &lt; less") < at("<figure id=\"one\""));
    for text in [
        "holds +60 %",
        "at M = 3; other: holds in part +61 %",
        "What other says under the same defaults",
        "another verdict than ours on X1 (then).",
        "not tested",
        "swell study made-up",
        "<a href=\"#one\">Picture</a>",
    ] {
        at(text);
    }
    // The table of numbers: 0.2 with a half-width of t(0.975; 4) x 0.01 / sqrt(5) = 0.0124.
    at("20\u{a0}%");
    at("[18.8\u{a0}…\u{a0}21.2]");
}

#[test]
fn the_page_says_where_the_reference_agrees_and_where_none_was_asked() {
    let mut study = study();
    study.ledgers[0].entries[0].findings[0].reference_verdict = Some(Verdict::Holds);
    let page = study_html(&study);
    assert!(page.contains("the same verdicts as ours"));
    assert!(!page.contains("another verdict"));
    study.ledgers[0].entries[0].findings[0] = Finding {
        reference: String::new(),
        reference_verdict: None,
        ..study.ledgers[0].entries[0].findings[0].clone()
    };
    let silent = study_html(&study);
    assert!(!silent.contains("What other says") && !silent.contains("other:"));
}

#[test]
fn a_picture_of_groups_has_a_bar_for_each_line_in_each() {
    let mut picture = study().sections[0].pictures[0].clone();
    picture.bars = vec!["none".into(), "few".into(), "some".into(), "many".into()];
    picture.lines.push(Line {
        name: "UDP".into(),
        slot: 2,
        points: vec![(1.0, Estimate::exact(-0.1))],
        measured: true,
    });
    let svg = study_svg(&picture, &Canvas::file(700.0, 420.0));
    // TCP has no number for the first group, and UDP has one for the second only.
    assert_eq!(svg.matches("class=\"bar\"").count(), 4, "{svg}");
    for text in ["none", "few", "some", "many", "TCP", "UDP"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}: {svg}");
    }
    let table = numbers(&picture);
    assert_eq!(table.rows.len(), 3);
    let vega = study_vega(&picture).to_string();
    assert!(vega.contains("\"group\":\"many\""), "{vega}");
}

#[test]
fn a_measured_line_has_a_bar_at_every_point() {
    let svg = study_svg(
        &study().sections[0].pictures[0],
        &Canvas::file(700.0, 400.0),
    );
    let bars = svg.split("class=\"bar c1\"").nth(1).unwrap();
    let d = bars.split("d=\"").nth(1).unwrap();
    let d = &d[..d.find('"').unwrap()];
    assert_eq!(d.matches('M').count(), 3, "{d}");
}

#[test]
fn single_points_are_named_where_they_stand() {
    let mut picture = study().sections[0].pictures[0].clone();
    let line = picture.lines[0].clone();
    let one = |(i, x): (usize, f64)| Line {
        name: format!("way {i}"),
        points: vec![(x, Estimate::exact(0.1))],
        ..line.clone()
    };
    // Two of them coincide, one is at the edge.
    picture.lines = [1.0, 1.0, 3.0].into_iter().enumerate().map(one).collect();
    let svg = study_svg(&picture, &Canvas::file(600.0, 400.0));
    let mut heights = Vec::new();
    for i in 0..3 {
        let end = format!(">way {i}</text>");
        assert_eq!(svg.matches(&end).count(), 1, "once, and in no legend");
        let tag = &svg[..svg.find(&end).unwrap()];
        let tag = &tag[tag.rfind("<text").unwrap()..];
        assert_eq!(tag.contains("\"end\""), i == 2, "{tag}");
        heights.push(tag[tag.find(" y=").unwrap()..].to_owned());
    }
    assert_ne!(heights[0], heights[1], "one below the other");
}

#[test]
fn titles_of_axes_begin_with_a_capital() {
    for (title, shown) in [
        ("utilisation", "Utilisation"),
        (
            "clients added to 20 Reno clients",
            "Clients added to 20 Reno clients",
        ),
        ("timescale, ms", "Timescale, ms"),
        ("p95", "p95"),
        ("x", "x"),
        ("Loss", "Loss"),
        ("", ""),
    ] {
        assert_eq!(capital(title), shown);
    }
    let svg = study_svg(
        &study().sections[0].pictures[0],
        &Canvas::file(700.0, 400.0),
    );
    assert!(svg.contains(">Clients</text>") && svg.contains(">Loss</text>"));
}

#[test]
fn the_axis_of_a_share_ends_at_one_whatever_its_intervals() {
    let mut picture = study().sections[0].pictures[0].clone();
    picture.lines[0].points = vec![
        (1.0, Estimate::known(0.96, 0.05, 5)),
        (2.0, Estimate::known(1.000_005, 0.0, 5)),
    ];
    assert_eq!(chart(&picture).y.hi, 1.0);
    picture.lines[0].points[1].1 = Estimate::exact(1.3);
    assert!(chart(&picture).y.hi >= 1.3);
    // A relative excess that may exceed one.
    picture.lines[0].points[1].1 = Estimate::known(0.9, 0.7, 5);
    assert!(chart(&picture).y.hi >= 1.6);
}

#[test]
fn zeros_are_in_the_table_where_a_logarithmic_axis_shows_nothing() {
    let mut picture = study().sections[0].pictures[0].clone();
    picture.y.log = true;
    for (_, y) in &mut picture.lines[0].points {
        *y = Estimate::exact(0.0);
    }
    let figure = figure(&picture);
    assert!(figure.empty);
    assert_eq!(figure.numbers.map(|t| t.rows.len()), Some(3));
    picture.lines[0].points.clear();
    assert!(super::figure(&picture).numbers.is_none());
}

#[test]
fn a_heat_map_is_drawn_and_every_cell_is_in_the_table() {
    let mut picture = study().sections[0].pictures[0].clone();
    picture.lines.clear();
    let cell = |x: f64, value: f64| swell_study::HeatCell {
        x,
        y: 0.6,
        value: Estimate::known(value, 0.1, 5),
        answer: Some(swell_study::Answer::Matters),
        framed: x > 1.0,
    };
    let panel = |across: f64, cells| swell_study::Panel {
        row: "TCP".into(),
        across,
        cells,
    };
    picture.heatmap = Some(swell_study::Heatmap {
        across: swell_study::Axis {
            title: "round trip".into(),
            unit: Unit::Seconds,
            log: false,
        },
        value: "times as long".into(),
        frame: "opposite".into(),
        panels: vec![
            panel(0.16, vec![cell(2.0, 3.0), cell(1.0, 0.0)]),
            panel(0.01, vec![cell(2.0, 1.5)]),
        ],
    });
    let canvas = |height| Canvas::file(700.0, height);
    let height = study_height(&picture, &canvas(0.0)).expect("a heat map has one");
    let svg = study_svg(&picture, &canvas(height));
    // A ratio of zero has no place on a logarithmic scale.
    assert_eq!(svg.matches("class=\"bar\"").count(), 2);
    let at = |text: &str| svg.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("Round trip 10\u{a0}ms") < at("Round trip 160\u{a0}ms"));
    let rows = study_vega(&picture)["data"]["values"].clone();
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
    let mut whole = study();
    whole.sections[0].pictures = vec![picture];
    let page = study_html(&whole);
    for text in [
        "160\u{a0}ms",
        "[2.88\u{a0}…\u{a0}3.12]",
        ">matters<",
        ">yes<",
    ] {
        assert!(page.contains(text), "{text}");
    }
}
