use resvg::usvg::roxmltree::{Document, Node};

use super::*;
use crate::chart::tests::parsed;

/// Two rows of two panels of two by two cells, of which one is missing.
fn map() -> HeatMap {
    let places = |title: &str, quantity, values: &[f64]| Places {
        title: title.into(),
        quantity,
        values: values.to_vec(),
    };
    let mut cells = Vec::new();
    for i in 0..15 {
        cells.push(HeatCell {
            panel: (i / 8, i / 4 % 2),
            at: (i % 2, i / 2 % 2),
            value: libm::pow(2.0, i as f64 - 3.0),
            interval: (i == 1).then_some([0.2, 0.3]),
            answer: Some(Answer::ALL[i % 3]),
            framed: i == 5,
        });
    }
    HeatMap {
        title: "Slowdown".into(),
        description: "Of objects".into(),
        rows: vec!["CBR".into(), "a <learnt> background".into()],
        across: places("Round trip", Quantity::Duration, &[0.01, 0.16]),
        x: places("Rate", Quantity::Rate, &[5e6, 20e6]),
        y: places("Load", Quantity::Share, &[0.3, 0.85]),
        value: "Times as long".into(),
        frame: "the opposite".into(),
        cells,
    }
}

fn drawn(map: &HeatMap, width: f64) -> String {
    let canvas = |height| Canvas::file(width, height);
    map.svg(&canvas(map.height(&canvas(0.0))))
}

fn bars<'a, 'i>(doc: &'a Document<'i>) -> Vec<Node<'a, 'i>> {
    let all = doc.descendants();
    all.filter(|n| n.attribute("class") == Some("bar"))
        .collect()
}

fn rect(bar: &Node<'_, '_>) -> [f64; 4] {
    let rect = bar.children().find(|n| n.has_tag_name("rect")).unwrap();
    ["x", "y", "width", "height"].map(|k| rect.attribute(k).unwrap().parse().unwrap())
}

#[test]
fn every_cell_has_its_place_its_number_and_its_answer() {
    for width in [360.0, 700.0] {
        let svg = drawn(&map(), width);
        let doc = parsed(&svg);
        let bars = bars(&doc);
        assert_eq!(bars.len(), 15);
        let rects: Vec<[f64; 4]> = bars.iter().map(rect).collect();
        for (i, a) in rects.iter().enumerate() {
            assert!(a[0] > 0.0 && a[0] + a[2] < width, "{a:?}");
            for b in &rects[..i] {
                let apart = a[0] >= b[0] + b[2] || b[0] >= a[0] + a[2];
                assert!(apart || a[1] >= b[1] + b[3] || b[1] >= a[1] + a[3]);
            }
        }
        assert!(rects[1][0] > rects[0][0], "more rate is to the right");
        assert!(rects[2][1] < rects[0][1], "more load is above");
        assert!(rects[4][0] > rects[1][0] && rects[8][1] > rects[0][1]);
        let root = doc.root_element();
        let height: f64 = root.attribute("height").unwrap().parse().unwrap();
        let lowest = rects.iter().map(|r| r[1] + r[3]).fold(0.0, f64::max);
        assert!(lowest + 30.0 < height && lowest + 60.0 > height);
        let circles = |bar: &Node<'_, '_>, fill: bool| {
            let mut all = bar.children().filter(|n| n.has_tag_name("circle"));
            all.any(|c| (c.attribute("fill") != Some("none")) == fill)
        };
        assert!(circles(&bars[0], true) && !circles(&bars[0], false));
        assert!(circles(&bars[1], false) && !circles(&bars[2], true));
    }
    let svg = drawn(&map(), 700.0).replace('\u{a0}', " ");
    for text in [
        ">Round trip 10 ms</text>",
        ">Rate, Mbit/s</text>",
        ">Load, %</text>",
        ">85</text>",
        ">a &lt;learnt&gt; background</text>",
        ">does not matter</text>",
        ">the opposite</text>",
        ">≥ 20.0</text>",
        ">0.25</text>",
        ">2048</text>",
        "Round trip 10 ms, Rate 20 Mbit/s, Load 30 %: 0.25× [0.20 … 0.30], does not matter",
        "cannot tell, the opposite\"",
        // Without the page's script the browser shows the title of a cell.
        "<title>CBR, Round trip 10 ms, Rate 20 Mbit/s, Load 30 %: 0.25× [0.20 … 0.30], does not matter</title>",
    ] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    // A white and a dark frame in the legend, and around a cell.
    assert_eq!(svg.matches("stroke-width=\"2.4\"").count(), 2);
}

#[test]
fn colours_are_the_same_distance_from_one_for_a_ratio_and_its_inverse() {
    assert_eq!(colour(1.0, 4.0), BELOW[0]);
    assert_eq!(colour(4.0, 4.0), ABOVE[3]);
    assert_eq!(colour(0.25, 4.0), BELOW[3]);
    assert_eq!([colour(100.0, 4.0), colour(0.0, 4.0)], [ABOVE[3], BELOW[3]]);
    let grey =
        |[r, g, b]: [u8; 3]| 0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b);
    for sign in [1.0, -1.0] {
        let greys = (0..=12).map(|i| grey(colour(libm::pow(4.0, sign * f64::from(i) / 12.0), 4.0)));
        assert!(greys.collect::<Vec<_>>().is_sorted_by(|a, b| a > b));
    }
    let mut small = map();
    small.cells.truncate(4);
    assert_eq!(small.end(), 8.0, "the farthest cell is 1/8");
    small.cells.truncate(0);
    assert_eq!(small.end(), ENDS[0]);
    assert!(drawn(&small, 700.0).contains(frame::NOTHING));
}

#[test]
fn a_specification_has_a_facet_for_each_panel_and_every_cell() {
    let spec = map().vega();
    let rows = spec["data"]["values"].as_array().unwrap();
    assert_eq!(rows.len(), 15);
    assert_eq!(rows[1]["low"], 0.2);
    assert_eq!(rows[1]["answer"], "does not matter");
    let tooltip = spec["spec"]["layer"][0]["encoding"]["tooltip"].clone();
    let fields: Vec<&str> = tooltip
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|t| t["field"].as_str())
        .collect();
    assert_eq!(fields, ["ratio", "low", "high", "answer"]);
    assert_eq!(rows[5]["framed"], true);
    assert_eq!(rows[14]["row"], "a <learnt> background");
    assert_eq!(spec["facet"]["column"]["title"], "Round trip (s)");
    let colour = &spec["spec"]["layer"][0]["encoding"]["color"]["scale"];
    assert_eq!(colour["domain"], serde_json::json!([0.05, 1.0, 20.0]));
    assert_eq!(colour["range"][1], "#f7f7f7");
}
