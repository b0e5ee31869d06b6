//! The network as a small drawing: a dumbbell with its hosts and its bottleneck.

use serde_json::{Value, json};

use crate::chart::{Canvas, begin};
use crate::data::NetworkData;
use crate::svg::{Svg, fit};

/// The drawing. Its height follows from the number of lines: see [`height`].
pub fn svg(network: &NetworkData, canvas: &Canvas) -> String {
    let mut svg = begin(canvas, TITLE, &description(network));
    for shape in shapes(network, canvas.width) {
        shape.draw(&mut svg);
    }
    svg.finish()
}

/// The drawing as a Vega-Lite specification. It has places in pixels instead of scales and axes.
pub(crate) fn vega(network: &NetworkData, width: f64) -> Value {
    let (mut lines, mut boxes, mut gates, mut texts) = (vec![], vec![], vec![], vec![]);
    for shape in shapes(network, width) {
        match shape {
            Shape::Wire(x, y, x2, y2) => lines.push(json!({
                "series": "wire", "x": x, "y": y, "x2": x2, "y2": y2, "wide": 1.2,
            })),
            Shape::Pipe(x, y, x2) => lines.push(json!({
                "series": "bottleneck", "x": x, "y": y, "x2": x2, "y2": y, "wide": 7,
            })),
            Shape::Gate(x, y) => gates.push(json!({"series": "gate", "x": x, "y": y})),
            Shape::Host([x, y, w, h]) => boxes.push(json!({
                "series": "hosts", "x": x, "y": y, "x2": x + w, "y2": y + h,
            })),
            Shape::Text(text) => texts.push(json!({
                "series": text.class, "x": text.x, "y": text.y, "text": text.words,
                "align": if text.middle { "center" } else { "left" },
            })),
        }
    }
    let at =
        |field: &str| json!({"field": field, "type": "quantitative", "scale": null, "axis": null});
    let to = |field: &str| json!({"field": field});
    let ends = json!({"x": at("x"), "y": at("y"), "x2": to("x2"), "y2": to("y2")});
    let mut wide = ends.clone();
    wide["strokeWidth"] = json!({"field": "wide", "type": "quantitative", "scale": null});
    let grey = "#7a828a";
    // One layer for each alignment: it is a property of marks, not of rows.
    let words = ["left", "center"].map(|align| {
        json!({
            "data": {"values": texts.iter().filter(|t| t["align"] == align).collect::<Vec<_>>()},
            "mark": {"type": "text", "align": align, "baseline": "alphabetic", "fontSize": 11.5, "color": "#1b1f23"},
            "encoding": {"x": at("x"), "y": at("y"), "text": {"field": "text", "type": "nominal"}},
        })
    });
    let mut layers = vec![
        json!({"data": {"values": lines}, "mark": {"type": "rule", "color": grey}, "encoding": wide}),
        json!({
            "data": {"values": boxes},
            "mark": {"type": "rect", "fill": "#ffffff", "stroke": grey, "cornerRadius": 5},
            "encoding": ends,
        }),
        json!({
            "data": {"values": gates},
            "mark": {"type": "point", "shape": "circle", "size": 254, "filled": true, "fill": "#ffffff", "stroke": grey, "opacity": 1},
            "encoding": {"x": at("x"), "y": at("y")},
        }),
    ];
    layers.extend(words);
    let rest = json!({
        "width": width, "height": height(network, width), "view": {"stroke": null}, "layer": layers,
    });
    crate::vega::top(TITLE, &description(network), rest)
}

/// Width of a specification, pixels.
pub(crate) const WIDE: f64 = 700.0;

const TITLE: &str = "The network";

fn description(network: &NetworkData) -> String {
    format!(
        "A dumbbell. Clients on the left, servers on the right, one bottleneck between them. Down: {}. Up: {}.",
        network.down.join(", "),
        network.up.join(", ")
    )
}

/// A line of text.
struct Text {
    class: &'static str,
    x: f64,
    y: f64,
    /// Around `x`; else it begins there.
    middle: bool,
    words: String,
}

/// A part of the drawing.
enum Shape {
    /// From one point to another.
    Wire(f64, f64, f64, f64),
    /// The bottleneck, from left to right at one height.
    Pipe(f64, f64, f64),
    /// An end of the bottleneck.
    Gate(f64, f64),
    /// Hosts: left, top, width and height.
    Host([f64; 4]),
    Text(Text),
}

impl Shape {
    fn draw(&self, svg: &mut Svg) {
        match self {
            Shape::Wire(x1, y1, x2, y2) => svg
                .tag("path")
                .attr("class", "wire")
                .attr("d", &crate::chart::straight(*x1, *y1, *x2, *y2))
                .empty(),
            Shape::Pipe(x1, y, x2) => svg
                .tag("path")
                .attr("class", "pipe")
                .attr("d", &crate::chart::straight(*x1, *y, *x2, *y))
                .empty(),
            Shape::Gate(x, y) => svg
                .tag("circle")
                .attr("class", "box")
                .num("cx", *x)
                .num("cy", *y)
                .attr("r", "9")
                .empty(),
            Shape::Host([x, y, width, height]) => svg
                .tag("rect")
                .attr("class", "box")
                .num("x", *x)
                .num("y", *y)
                .num("width", *width)
                .num("height", *height)
                .attr("rx", "5")
                .empty(),
            Shape::Text(text) => {
                let mut tag = svg.tag("text");
                if !text.class.is_empty() {
                    tag = tag.attr("class", text.class);
                }
                tag = tag.num("x", text.x).num("y", text.y);
                if text.middle {
                    tag = tag.attr("text-anchor", "middle");
                }
                tag.text(&text.words);
            }
        }
    }
}

/// The parts of the drawing at this width, the lowest layer first.
fn shapes(network: &NetworkData, width: f64) -> Vec<Shape> {
    let narrow = width < 520.0;
    let side = if narrow { 118.0 } else { 172.0 };
    let (left, right) = (1.0, width - side - 1.0);
    let (clients, users) = (
        box_height(network.clients.len()),
        box_height(network.users.len()),
    );
    let total = clients + users + 18.0;
    let middle = 8.0 + total / 2.0;
    let users_y = 8.0 + clients + 18.0;
    let gates = if narrow {
        (left + side + 22.0, right - 22.0)
    } else {
        (left + side + 36.0, right - 36.0)
    };

    let mut out = Vec::new();
    for (y, height) in [(8.0, clients), (users_y, users)] {
        let from = y + height / 2.0;
        out.push(Shape::Wire(left + side, from, gates.0, middle));
        out.push(Shape::Wire(right, from, gates.1, middle));
    }
    out.push(Shape::Pipe(gates.0, middle, gates.1));
    out.extend([gates.0, gates.1].map(|x| Shape::Gate(x, middle)));
    let server = |n: &[String], what: &str| vec![what.to_owned(); usize::from(!n.is_empty())];
    let application = [8.0, side, clients];
    let background = [users_y, side, users];
    boxed(&mut out, left, application, "application", &network.clients);
    boxed(&mut out, left, background, "background", &network.users);
    let served = server(&network.clients, "application");
    boxed(&mut out, right, application, "servers", &served);
    let hosted = server(&network.users, "background");
    boxed(&mut out, right, background, "servers", &hosted);

    let mut write = |x: f64, y: f64, class: &'static str, text: &str, room: f64| {
        out.push(Shape::Text(Text {
            class,
            x,
            y,
            middle: true,
            words: fit(text, 11.5, room),
        }));
    };
    if narrow {
        // A narrow picture has no space beside the link, so its description is below the drawing.
        for (i, line) in below(network).iter().enumerate() {
            let class = if i % 2 == 0 { "title" } else { "note" };
            let y = 8.0 + total + 22.0 + 16.0 * i as f64;
            write(width / 2.0, y, class, line, width - 12.0);
        }
        return out;
    }
    let (centre, room) = ((gates.0 + gates.1) / 2.0, gates.1 - gates.0 - 8.0);
    let (up, down) = (network.up.join(" · "), network.down.join(" · "));
    if up == down {
        write(centre, middle - 14.0, "title", &heading(network), room);
        write(centre, middle + 24.0, "note", &down, room);
    } else {
        write(centre, middle - 30.0, "title", "up →", room);
        write(centre, middle - 14.0, "note", &up, room);
        write(centre, middle + 24.0, "title", "← down", room);
        write(centre, middle + 40.0, "note", &down, room);
    }
    let y = 8.0 + total + 22.0;
    write(centre, y, "note", &network.rtt, width - 12.0);
    out
}

/// The heading of the drawn link.
fn heading(network: &NetworkData) -> String {
    match network.drawn.as_str() {
        "" => "bottleneck, each direction".into(),
        name => format!("{name}, the slowest of {} links", network.links.len()),
    }
}

/// Height of the drawing at this width, in pixels.
pub(crate) fn height(network: &NetworkData, width: f64) -> f64 {
    let boxes = box_height(network.clients.len()) + box_height(network.users.len()) + 26.0;
    let lines = if width < 520.0 {
        below(network).len() as f64 * 16.0 + 16.0
    } else {
        30.0
    };
    boxes + lines
}

fn below(network: &NetworkData) -> Vec<String> {
    let (up, down) = (network.up.join(" · "), network.down.join(" · "));
    let mut lines = if up == down {
        vec![heading(network), down]
    } else {
        vec!["up →".into(), up, "← down".into(), down]
    };
    if !network.rtt.is_empty() {
        lines.push(String::new());
        lines.push(network.rtt.clone());
    }
    lines
}

/// Names beyond this many become "and n more".
const SHOWN: usize = 8;

fn box_height(lines: usize) -> f64 {
    30.0 + 16.0 * lines.clamp(1, SHOWN + 1) as f64
}

/// A box of hosts with its lines. `[y, width, height]` is where it is.
fn boxed(out: &mut Vec<Shape>, x: f64, [y, width, height]: [f64; 3], head: &str, lines: &[String]) {
    out.push(Shape::Host([x, y, width, height]));
    let text = |class, baseline, words| {
        Shape::Text(Text {
            class,
            x: x + 10.0,
            y: baseline,
            middle: false,
            words,
        })
    };
    out.push(text("note", y + 18.0, head.to_owned()));
    let more = format!("and {} more", lines.len().saturating_sub(SHOWN));
    let shown = lines
        .iter()
        .take(SHOWN)
        .chain((lines.len() > SHOWN).then_some(&more));
    for (i, line) in shown.enumerate() {
        let words = fit(line, 12.0, width - 20.0);
        out.push(text("", y + 36.0 + 16.0 * i as f64, words));
    }
}
