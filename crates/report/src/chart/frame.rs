//! Parts shared by charts: the outer element, axes, grid, the clipped plot.

use super::axis::{ACROSS, UPRIGHT};
use super::{Axis, Canvas};
use crate::palette;
use crate::svg::{Svg, fit, number};

/// Plot pixels kept free beyond both ends of the vertical axis, so that a line at the end is not
/// cut in half.
pub(crate) const BLEED: f64 = 3.0;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Opens the outer element with its title and description.
pub(crate) fn begin(canvas: &Canvas, title: &str, description: &str) -> Svg {
    let mut svg = Svg::default();
    let (title_id, desc_id) = (format!("{}-t", canvas.id), format!("{}-d", canvas.id));
    let mut tag = svg.tag("svg").attr("class", "chart");
    if canvas.standalone {
        tag = tag
            .attr("xmlns", "http://www.w3.org/2000/svg")
            .num("width", canvas.width)
            .num("height", canvas.height);
    }
    tag.attr(
        "viewBox",
        &format!("0 0 {} {}", canvas.width.round(), canvas.height.round()),
    )
    .attr("role", "img")
    .attr("aria-labelledby", &format!("{title_id} {desc_id}"))
    .open();
    svg.tag("title").attr("id", &title_id).text(title);
    svg.tag("desc").attr("id", &desc_id).text(description);
    if canvas.standalone {
        svg.raw("<style>");
        svg.raw(&palette::standalone_css());
        svg.raw("</style>");
        svg.tag("rect")
            .attr("class", "ground")
            .attr("width", "100%")
            .attr("height", "100%")
            .empty();
    }
    svg
}

/// What a shape says when the pointer is on it. In a page the script says it, so this is only for files of their own.
pub(crate) fn tooltip(svg: &mut Svg, canvas: &Canvas, text: &str) {
    if canvas.standalone {
        svg.tag("title").text(text);
    }
}

/// Draws the heading of a standalone picture and returns its height.
pub(crate) fn heading(svg: &mut Svg, canvas: &Canvas, title: &str) -> f64 {
    if !canvas.standalone {
        return 0.0;
    }
    svg.tag("text")
        .attr("class", "head")
        .num("x", canvas.pad())
        .attr("y", "20")
        .text(&fit(title, 13.0, canvas.width - 20.0));
    26.0
}

/// Draws the title of the vertical axis at height `y`.
pub(crate) fn y_title(svg: &mut Svg, canvas: &Canvas, axis: &Axis, y: f64) {
    svg.tag("text")
        .attr("class", "title")
        .num("x", canvas.pad())
        .num("y", y)
        .text(&fit(&axis.full_title(), 12.0, canvas.width - 20.0));
}

/// Width of the labels of a vertical axis, in pixels.
pub(crate) fn label_room(axis: &Axis, pixels: f64) -> f64 {
    axis.ticks(pixels, UPRIGHT)
        .iter()
        .filter_map(|t| t.label.as_deref())
        .map(|l| crate::svg::text_width(l, 11.5))
        .fold(12.0, f64::max)
        .min(90.0)
        + 8.0
}

/// Horizontal grid lines with labels to the left.
pub(crate) fn y_axis(svg: &mut Svg, axis: &Axis, area: Area) {
    svg.tag("g").attr("class", "yaxis").open();
    for tick in axis.ticks(area.height, UPRIGHT) {
        let (Some(t), Some(label)) = (axis.at(tick.value), tick.label) else {
            continue;
        };
        let y = area.y + area.height * (1.0 - t);
        svg.tag("path")
            .attr("class", "grid")
            .attr("d", &line(area.x, y, area.x + area.width, y))
            .empty();
        svg.tag("text")
            .attr("class", "tick")
            .num("x", area.x - 6.0)
            .num("y", y + 4.0)
            .attr("text-anchor", "end")
            .text(&label);
    }
    svg.close();
}

/// The horizontal axis below the area: line, ticks, labels and, if `titled`, its title.
pub(crate) fn x_axis(svg: &mut Svg, axis: &Axis, area: Area, titled: bool) {
    let bottom = area.y + area.height;
    svg.tag("path")
        .attr("class", "axis")
        .attr("d", &line(area.x, bottom, area.x + area.width, bottom))
        .empty();
    svg.tag("g").attr("class", "xaxis").open();
    let ticks: Vec<(f64, f64, Option<String>, u8)> = axis
        .ticks(area.width, ACROSS)
        .into_iter()
        .filter_map(|tick| {
            let x = area.x + area.width * axis.at(tick.value)?;
            let half = crate::svg::text_width(tick.label.as_deref().unwrap_or(""), 11.5) / 2.0;
            Some((x, half, tick.label, tick.rank))
        })
        .collect();
    // The most important labels are placed first.
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for rank in 0..=3 {
        for (x, half, label, _) in ticks.iter().filter(|t| t.3 == rank) {
            let Some(label) = label else { continue };
            let (from, to) = (x - half - 4.0, x + half + 4.0);
            if taken.iter().any(|&(a, b)| from < b && to > a) {
                continue;
            }
            taken.push((from, to));
            svg.tag("text")
                .attr("class", "tick")
                .num("x", *x)
                .num("y", bottom + 18.0)
                .attr("text-anchor", "middle")
                .text(label);
        }
    }
    for (x, _, label, _) in &ticks {
        let length = if label.is_some() { 5.0 } else { 3.0 };
        svg.tag("path")
            .attr("class", "axis")
            .attr("d", &line(*x, bottom, *x, bottom + length))
            .empty();
    }
    svg.close();
    if titled {
        svg.tag("text")
            .attr("class", "title")
            .num("x", area.x + area.width / 2.0)
            .num("y", bottom + 37.0)
            .attr("text-anchor", "middle")
            .text(&axis.full_title());
    }
}

/// Opens the clipped plot. Inside, (0, 0) is the upper left end of the axes. Plots with the same `link` share cursor
/// and zoom.
pub(crate) fn open_plot(svg: &mut Svg, x: &Axis, y: &Axis, area: Area, link: &str) {
    let height = area.height + 2.0 * BLEED;
    svg.tag("svg")
        .attr("class", "plot")
        .num("x", area.x)
        .num("y", area.y - BLEED)
        .num("width", area.width)
        .num("height", height)
        .attr(
            "viewBox",
            &format!("0 -{BLEED} {} {}", number(area.width), number(height)),
        )
        .attr("preserveAspectRatio", "none")
        .attr("data-x", &x.for_script())
        .attr("data-y", &y.for_script())
        .attr("data-h", &number(area.height))
        .attr("data-link", link)
        .open();
}

/// Class of the sentence in an empty area, by which figures without anything to save are found.
pub(crate) const NOTHING: &str = "note nothing";

/// A sentence in the middle of an area that has nothing to show.
pub(crate) fn nothing(svg: &mut Svg, area: Area) {
    svg.tag("text")
        .attr("class", NOTHING)
        .num("x", area.x + area.width / 2.0)
        .num("y", area.y + area.height / 2.0)
        .attr("text-anchor", "middle")
        .text("nothing to show");
}

/// Path data of one straight line.
pub(crate) fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> String {
    let mut d = crate::svg::PathData::default();
    d.move_to(x1, y1);
    d.line_to(x2, y2);
    d.finish()
}
