//! The network as a small drawing: a dumbbell with its hosts and its bottleneck.

use crate::chart::{Canvas, begin};
use crate::data::NetworkData;
use crate::svg::{Svg, fit};

/// The drawing. Its height follows from the number of lines: see [`height`].
pub fn svg(network: &NetworkData, canvas: &Canvas) -> String {
    let mut svg = begin(
        canvas,
        "The network",
        &format!(
            "A dumbbell. Clients on the left, servers on the right, one bottleneck between them. \
             Down: {}. Up: {}.",
            network.down.join(", "),
            network.up.join(", ")
        ),
    );
    let narrow = canvas.width < 520.0;
    let side = if narrow { 118.0 } else { 172.0 };
    let (left, right) = (1.0, canvas.width - side - 1.0);
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

    for (y, height) in [(8.0, clients), (users_y, users)] {
        let from = y + height / 2.0;
        wire(&mut svg, left + side, from, gates.0, middle);
        wire(&mut svg, right, from, gates.1, middle);
    }
    svg.tag("path")
        .attr("class", "pipe")
        .attr(
            "d",
            &crate::chart::straight(gates.0, middle, gates.1, middle),
        )
        .empty();
    for x in [gates.0, gates.1] {
        svg.tag("circle")
            .attr("class", "box")
            .num("cx", x)
            .num("cy", middle)
            .attr("r", "9")
            .empty();
    }
    let server = |n: &[String], what: &str| vec![what.to_owned(); usize::from(!n.is_empty())];
    boxed(
        &mut svg,
        left,
        8.0,
        side,
        clients,
        "application",
        &network.clients,
    );
    boxed(
        &mut svg,
        left,
        users_y,
        side,
        users,
        "background",
        &network.users,
    );
    boxed(
        &mut svg,
        right,
        8.0,
        side,
        clients,
        "servers",
        &server(&network.clients, "application"),
    );
    boxed(
        &mut svg,
        right,
        users_y,
        side,
        users,
        "servers",
        &server(&network.users, "background"),
    );

    let centre = (gates.0 + gates.1) / 2.0;
    if narrow {
        // A narrow picture has no space beside the link, so its description is below the drawing.
        for (i, line) in below(network).iter().enumerate() {
            svg.tag("text")
                .attr("class", if i % 2 == 0 { "title" } else { "note" })
                .num("x", canvas.width / 2.0)
                .num("y", 8.0 + total + 22.0 + 16.0 * i as f64)
                .attr("text-anchor", "middle")
                .text(&fit(line, 11.5, canvas.width - 12.0));
        }
    } else {
        let room = gates.1 - gates.0 - 8.0;
        let (up, down) = (network.up.join(" · "), network.down.join(" · "));
        let mut write = |y: f64, class: &str, text: &str| {
            svg.tag("text")
                .attr("class", class)
                .num("x", centre)
                .num("y", y)
                .attr("text-anchor", "middle")
                .text(&fit(text, 11.5, room));
        };
        if up == down {
            write(middle - 14.0, "title", &heading(network));
            write(middle + 24.0, "note", &down);
        } else {
            write(middle - 30.0, "title", "up →");
            write(middle - 14.0, "note", &up);
            write(middle + 24.0, "title", "← down");
            write(middle + 40.0, "note", &down);
        }
        svg.tag("text")
            .attr("class", "note")
            .num("x", centre)
            .num("y", 8.0 + total + 22.0)
            .attr("text-anchor", "middle")
            .text(&fit(&network.rtt, 11.5, canvas.width - 12.0));
    }
    svg.finish()
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

fn wire(svg: &mut Svg, x1: f64, y1: f64, x2: f64, y2: f64) {
    svg.tag("path")
        .attr("class", "wire")
        .attr("d", &crate::chart::straight(x1, y1, x2, y2))
        .empty();
}

fn boxed(svg: &mut Svg, x: f64, y: f64, width: f64, height: f64, head: &str, lines: &[String]) {
    svg.tag("rect")
        .attr("class", "box")
        .num("x", x)
        .num("y", y)
        .num("width", width)
        .num("height", height)
        .attr("rx", "5")
        .empty();
    svg.tag("text")
        .attr("class", "note")
        .num("x", x + 10.0)
        .num("y", y + 18.0)
        .text(head);
    let more = format!("and {} more", lines.len().saturating_sub(SHOWN));
    let shown = lines
        .iter()
        .take(SHOWN)
        .chain((lines.len() > SHOWN).then_some(&more));
    for (i, line) in shown.enumerate() {
        svg.tag("text")
            .num("x", x + 10.0)
            .num("y", y + 36.0 + 16.0 * i as f64)
            .text(&fit(line, 12.0, width - 20.0));
    }
}
