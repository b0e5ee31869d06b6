use super::*;
use crate::human::Quantity;
use resvg::usvg::roxmltree::{Document, Node};

/// Parses a picture, which must be well-formed XML without non-finite numbers.
pub(crate) fn parsed(svg: &str) -> Document<'_> {
    for bad in ["NaN", "inf", "Infinity"] {
        for attribute in [" d=", " x=", " y=", " width=", " height=", " viewBox="] {
            assert!(
                !svg.contains(&format!("{attribute}\"{bad}")),
                "{bad} in {svg}"
            );
        }
    }
    Document::parse(svg).unwrap_or_else(|e| panic!("{e}: {svg}"))
}

fn with_class<'a, 'i>(doc: &'a Document<'i>, class: &str) -> Vec<Node<'a, 'i>> {
    let class = class.to_owned();
    doc.descendants()
        .filter(|n| {
            n.attribute("class")
                .is_some_and(|c| c.split(' ').any(|one| one == class))
        })
        .collect()
}

fn texts(nodes: &[Node<'_, '_>]) -> Vec<String> {
    let text = |n: &Node<'_, '_>| n.text().unwrap_or("").replace('\u{a0}', " ");
    nodes.iter().map(text).collect()
}

fn curve(name: &str, slot: usize, shape: Shape, points: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: name.into(),
        note: String::new(),
        slot,
        shape,
        points,
        band: Vec::new(),
    }
}

fn xy(x: Axis, curves: Vec<Curve>) -> XyChart {
    XyChart {
        title: "Title".into(),
        description: "Description".into(),
        x,
        y: Axis::linear("Share", Quantity::Share, [0.0, 1.0].into_iter(), true),
        curves,
        marks: vec![0.5],
        link: String::new(),
    }
}

#[test]
fn a_distribution_function_has_a_path_and_a_key_per_curve_and_human_labels() {
    let points = |k: f64| vec![(0.01 * k, 0.25), (0.1 * k, 0.5), (1.0 * k, 1.0)];
    let chart = xy(
        Axis::log("Time", Quantity::Duration, [0.01, 10.0].into_iter()),
        vec![
            curve("none", 0, Shape::Step, points(1.0)),
            curve("learnt", 3, Shape::Step, points(10.0)),
        ],
    );
    let svg = chart.svg(&Canvas::file(720.0, 400.0));
    let doc = parsed(&svg);
    let lines: Vec<_> = doc
        .descendants()
        .filter(|n| n.has_attribute("data-name"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(with_class(&doc, "key").len(), 2);
    let ticks = texts(&with_class(&doc, "tick"));
    for label in ["0 %", "100 %", "10 ms", "100 ms", "1 s", "10 s"] {
        assert!(ticks.iter().any(|t| t == label), "{label} in {ticks:?}");
    }
    // Up from the axis through three steps: one move, and as many level pieces as steps.
    let d = lines[0].attribute("d").unwrap();
    assert_eq!(d.matches('M').count(), 1);
    assert_eq!(d.matches('V').count(), 3);
    assert_eq!(d.matches('H').count(), 2);
    let title = doc
        .root_element()
        .children()
        .find(|n| n.has_tag_name("title"));
    assert_eq!(title.and_then(|t| t.text()), Some("Title"));
    assert!(doc.descendants().any(|n| n.has_tag_name("desc")));
}

/// Reading the path back through the axes gives the data.
#[test]
fn a_path_says_what_the_data_says() {
    let data = [(0.2, 0.1), (0.5, 0.4), (0.9, 0.7)];
    let axis = Axis::linear("Time", Quantity::Duration, [0.0, 1.0].into_iter(), true);
    let chart = xy(
        axis.clone(),
        vec![curve("a", 1, Shape::Line, data.to_vec())],
    );
    let svg = chart.svg(&Canvas::file(720.0, 400.0));
    let doc = parsed(&svg);
    let plot = with_class(&doc, "plot")[0];
    let number = |name: &str| plot.attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (number("width"), number("data-h"));
    let line = doc
        .descendants()
        .find(|n| n.has_attribute("data-name"))
        .unwrap();
    let drawn: Vec<(f64, f64)> = line
        .attribute("d")
        .unwrap()
        .split(['M', 'L'])
        .filter(|s| !s.is_empty())
        .map(|pair| pair.split_once(' ').unwrap())
        .map(|(x, y)| {
            (
                x.parse::<f64>().unwrap() / width,
                1.0 - y.parse::<f64>().unwrap() / height,
            )
        })
        .collect();
    for (at, said) in drawn.iter().zip(data) {
        // Coordinates are rounded to hundredths of a pixel.
        assert!((at.0 - said.0).abs() < 0.01 / width, "{at:?} {said:?}");
        assert!((at.1 - said.1).abs() < 0.01 / height, "{at:?} {said:?}");
    }
    assert_eq!(drawn.len(), 3);
}

#[test]
fn nothing_breaks_on_empty_single_hostile_or_huge_data() {
    let nan = f64::NAN;
    let sets: Vec<Vec<(f64, f64)>> = vec![
        vec![],
        vec![(1.0, 1.0)],
        vec![(nan, nan), (1.0, nan), (nan, 0.5)],
        vec![(0.0, 0.5), (-1.0, 0.5)],
        vec![(f64::INFINITY, 1.0), (f64::NEG_INFINITY, 0.0)],
        vec![(1e-320, 0.1), (1e308, 0.9)],
        vec![(2.0, 0.3); 50],
        (0..200_000)
            .map(|i| (f64::from(i), f64::from(i % 7) / 7.0))
            .collect(),
    ];
    for points in sets {
        for shape in [Shape::Step, Shape::Line, Shape::Marked] {
            let values = || points.iter().map(|p| p.0);
            for x in [
                Axis::log("x", Quantity::Duration, values()),
                Axis::linear("x", Quantity::Bytes, values(), false).nice(300.0),
                Axis::by_spread("x", Quantity::Plain, &values().collect::<Vec<_>>(), 5.0),
            ] {
                let mut one = curve("c", 1, shape, points.clone());
                one.band = points.iter().map(|p| (p.0, p.1 - 0.1, p.1 + 0.1)).collect();
                for canvas in [Canvas::file(700.0, 380.0), Canvas::file(10.0, 10.0)] {
                    let svg = xy(x.clone(), vec![one.clone()]).svg(&canvas);
                    parsed(&svg);
                    if shape != Shape::Marked {
                        let d = svg.split(" data-kind=").nth(1).map_or(0, str::len);
                        assert!(d < 120_000, "thinned to what pixels show: {d}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_empty_chart_says_so_and_makes_no_axes_up() {
    let x = Axis::linear("x", Quantity::Plain, std::iter::empty(), true);
    let mut marked = xy(x, vec![curve("none", 1, Shape::Dots, vec![])]);
    marked.marks = vec![0.5];
    for picture in [
        marked.svg(&Canvas::file(700.0, 380.0)),
        timeline(&[]).svg(&Canvas::file(700.0, 380.0)),
        bars(vec![]).svg(&Canvas::file(700.0, 380.0)),
        bars(vec![f64::NAN; 2]).svg(&Canvas::file(700.0, 380.0)),
    ] {
        assert!(picture.contains("nothing to show"));
        assert!(!picture.contains("\"tick\""), "{picture}");
        // No line runs through the sentence.
        let of_strips = picture.contains(">Load</title>");
        assert!(of_strips || !picture.contains("\"ref\""), "{picture}");
    }
}

fn bars(values: Vec<f64>) -> BarChart {
    BarChart {
        title: "Slowdown".into(),
        description: String::new(),
        y_title: "Slowdown".into(),
        quantity: Quantity::Ratio,
        reference: 1.0,
        at_least: (0.9, 1.1),
        stacked: false,
        series: values
            .iter()
            .enumerate()
            .map(|(i, _)| (format!("b{i}"), i % 8))
            .collect(),
        groups: vec![BarGroup {
            name: "median".into(),
            bars: values
                .iter()
                .map(|&value| Bar::with_ends(value, [value * 0.9, value * 1.1]))
                .collect(),
        }],
    }
}

#[test]
fn bars_rise_from_one_when_slower_and_hang_from_it_when_faster() {
    let svg = bars(vec![2.0, 0.5]).svg(&Canvas::file(700.0, 380.0));
    let doc = parsed(&svg);
    assert_eq!(with_class(&doc, "whisker").len(), 2);
    let groups = with_class(&doc, "bar");
    let rect = |i: usize, name: &str| -> f64 {
        let rect = groups[i]
            .children()
            .find(|n| n.has_tag_name("rect"))
            .unwrap();
        rect.attribute(name).unwrap().parse().unwrap()
    };
    let base = rect(0, "y") + rect(0, "height");
    assert!((base - rect(1, "y")).abs() < 0.02, "both meet at 1×");
    assert!(
        (rect(0, "height") - 2.0 * rect(1, "height")).abs() < 0.05,
        "1 up, 0.5 down"
    );
    let text = groups[0].attribute("data-text").unwrap();
    assert_eq!(text, "median: 2.00× [1.80× … 2.20×]");
}

#[test]
fn parts_of_a_whole_stand_on_each_other() {
    let chart = BarChart {
        stacked: true,
        reference: 0.0,
        ..bars(vec![1.0, 0.0, 3.0])
    };
    let svg = chart.svg(&Canvas::file(700.0, 380.0));
    let doc = parsed(&svg);
    let all: Vec<[f64; 3]> = with_class(&doc, "bar")
        .iter()
        .filter_map(|bar| bar.children().find(|n| n.has_tag_name("rect")))
        .map(|rect| ["x", "y", "height"].map(|k| rect.attribute(k).unwrap().parse().unwrap()))
        .collect();
    let [one, none, three] = all[..] else {
        panic!("{all:?}")
    };
    assert!(
        (three[2] - 3.0 * one[2]).abs() < 0.05 && none[2] < 0.05,
        "{all:?}"
    );
    assert!((three[1] + three[2] - one[1]).abs() < 0.05, "{all:?}");
    assert!((one[0] - three[0]).abs() < 0.05, "{all:?}");
}

/// On a narrow figure values are written upwards: none runs into its neighbour's column, and none is left out.
#[test]
fn values_of_narrow_bars_are_turned_and_all_there() {
    let mut chart = bars(vec![1.0, 1.55]);
    chart.groups[0].bars[1] = Bar::with_ends(1.55, [1.28, 1.86]);
    chart.groups = vec![chart.groups[0].clone(); 4];
    for (width, turned) in [(700.0, false), (317.0, true)] {
        let svg = chart.svg(&Canvas::file(width, 240.0));
        let doc = parsed(&svg);
        let mut columns = Vec::new();
        for bar in with_class(&doc, "bar") {
            let part = |tag: &str| bar.children().find(|n| n.has_tag_name(tag)).unwrap();
            let number = |n: &resvg::usvg::roxmltree::Node<'_, '_>, name: &str| -> f64 {
                n.attribute(name).unwrap().parse().unwrap()
            };
            let (rect, text) = (part("rect"), part("text"));
            assert_eq!(text.has_attribute("transform"), turned, "{svg}");
            let (left, bar_width) = (number(&rect, "x"), number(&rect, "width"));
            let x = number(&text, "x");
            if turned {
                assert!(x - 9.0 >= left && x <= left + bar_width, "{x} {left}");
            }
            columns.push(x);
        }
        assert_eq!(columns.len(), 8);
    }
}

/// A value above its whisker would be read as the end of the interval.
#[test]
fn values_stand_on_their_bars_clear_of_the_whiskers() {
    let number = |n: &resvg::usvg::roxmltree::Node<'_, '_>, name: &str| -> f64 {
        n.attribute(name).unwrap().parse().unwrap()
    };
    for (count, labelled) in [(2, true), (30, false)] {
        let mut chart = bars(vec![2.0; count]);
        for bar in &mut chart.groups[0].bars {
            (bar.lo, bar.hi) = (1.2, 3.0);
        }
        let svg = chart.svg(&Canvas::file(700.0, 380.0));
        let doc = parsed(&svg);
        for bar in with_class(&doc, "bar") {
            let part = |tag: &str| bar.children().find(|n| n.has_tag_name(tag));
            let Some(text) = part("text") else {
                assert!(!labelled);
                continue;
            };
            assert!(labelled);
            let rect = part("rect").unwrap();
            let above = number(&rect, "y") - number(&text, "y");
            assert!((4.0..=6.0).contains(&above), "{above}");
            // The path starts with "M x a V b": its first number is the whisker's x, minus its cap.
            let d = part("path").unwrap().attribute("d").unwrap();
            let x: f64 = d[1..]
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            let end = number(&text, "x") + crate::svg::text_width("2.00×", 11.0);
            assert!(end <= x - 5.0, "{end} {x}");
        }
    }
}

#[test]
fn a_lower_bound_is_labelled_as_one() {
    let mut chart = bars(vec![5.0]);
    chart.groups[0].bars[0] = Bar::with_ends(5.0, [5.0, f64::INFINITY]);
    let svg = chart.svg(&Canvas::file(700.0, 380.0));
    assert!(svg.contains(">≥ 5.00×</text>"), "{svg}");
    assert!(with_class(&parsed(&svg), "whisker").is_empty());
}

#[test]
fn a_difference_of_a_hundredth_looks_small() {
    let svg = bars(vec![1.01]).svg(&Canvas::file(700.0, 380.0));
    let doc = parsed(&svg);
    let bar = with_class(&doc, "bar")[0];
    let rect = bar.children().find(|n| n.has_tag_name("rect")).unwrap();
    let height: f64 = rect.attribute("height").unwrap().parse().unwrap();
    // The axis spans at least 0.9 to 1.1 over some 290 pixels.
    assert!(height < 290.0 * 0.01 / 0.2 + 1.0, "{height}");
}

#[test]
fn bars_take_any_value() {
    for values in [
        vec![f64::NAN],
        vec![f64::INFINITY, 1.0],
        vec![0.0, -1.0],
        vec![1e-9, 1e9],
        vec![1.0; 60],
    ] {
        parsed(&bars(values.clone()).svg(&Canvas::file(700.0, 380.0)));
        parsed(&bars(values).svg(&Canvas::file(80.0, 80.0)));
    }
}

fn timeline(values: &[f64]) -> Timeline {
    let layer = |kind, slot| Layer {
        name: format!("{kind:?}"),
        slot,
        kind,
        values: values.to_vec(),
    };
    Timeline {
        title: "Load".into(),
        description: String::new(),
        time: "Time".into(),
        start: 0.0,
        bin: 0.1,
        strips: vec![Strip {
            y: Axis::linear("Load", Quantity::Share, [0.0, 1.0].into_iter(), true),
            layers: vec![
                layer(LayerKind::Stacked, 1),
                layer(LayerKind::Range, 2),
                layer(LayerKind::Mean, 3),
                layer(LayerKind::Peak, 4),
            ],
            mark: Some(1.0),
        }],
        titled: true,
        link: String::new(),
    }
}

/// Thinning keeps a single spike among a hundred thousand bins.
#[test]
fn a_timeline_is_thinned_but_keeps_its_extremes() {
    let mut values = vec![0.25; 100_000];
    values[54_321] = 1.0;
    let svg = timeline(&values).svg(&Canvas::file(700.0, 300.0));
    assert!(svg.len() < 40_000, "{}", svg.len());
    let doc = parsed(&svg);
    let kinds = |kind: &str| {
        let node = doc
            .descendants()
            .find(|n| n.attribute("data-kind") == Some(kind));
        node.and_then(|n| n.attribute("d")).unwrap_or("").to_owned()
    };
    // The spike is as high as the strip: y = 0.
    for kind in ["range", "peak"] {
        assert!(kinds(kind).contains("V0H"), "{kind}: {}", kinds(kind));
    }
    assert!(
        !kinds("level").contains("V0H"),
        "the mean of a column is lower"
    );
    // A constant gives one level piece, not one per column.
    let flat = timeline(&vec![0.25; 100_000]).svg(&Canvas::file(700.0, 300.0));
    assert!(flat.len() < 6_000, "{}", flat.len());
}

#[test]
fn a_timeline_takes_any_value() {
    for values in [
        vec![f64::NAN; 10],
        vec![f64::INFINITY, -1e308, 1e308],
        vec![0.5],
        vec![0.1, f64::NAN, 0.2, f64::NAN, f64::NAN, 0.3],
    ] {
        parsed(&timeline(&values).svg(&Canvas::file(700.0, 300.0)));
        parsed(&timeline(&values).svg(&Canvas::file(20.0, 20.0)));
    }
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</text></svg><script>alert(1)</script>\" onload=\"alert(2)\u{0}\u{202e}&#x3c;";
    let long = "x".repeat(10_000);
    for name in [evil, &long, "", "日本語の名前", "]]>"] {
        let axis = || Axis::linear(name, Quantity::Duration, [0.0, 1.0].into_iter(), true);
        let mut chart = xy(axis(), vec![curve(name, 1, Shape::Step, vec![(0.5, 1.0)])]);
        chart.title = name.into();
        chart.link = name.into();
        let mut bar = bars(vec![1.5]);
        bar.series[0].0 = name.into();
        bar.groups[0].name = name.into();
        let mut time = timeline(&[0.5]);
        time.title = name.into();
        time.strips[0].layers[0].name = name.into();
        let canvas = Canvas::file(700.0, 380.0);
        for svg in [chart.svg(&canvas), bar.svg(&canvas), time.svg(&canvas)] {
            let doc = parsed(&svg);
            assert!(doc.descendants().all(|n| !n.has_tag_name("script")));
            assert!(doc.descendants().all(|n| !n.has_attribute("onload")));
        }
    }
}
