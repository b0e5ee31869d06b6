//! Grouped bars with intervals, drawn up or down from a reference.

use super::frame::{self, Area};
use super::legend::{self, Key, Sample};
use super::{Axis, Canvas};
use swell_verdict::Known;

use crate::human::Quantity;
use crate::svg::{Svg, fit, number, text_width};

/// Text size of values, pixels.
const LABEL: f64 = 11.0;

/// A bar: a value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The estimate; NaN if unknown.
    pub value: f64,
    /// Lower end of the interval; NaN if unknown.
    pub lo: f64,
    /// Upper end of the interval; NaN or infinite if unknown.
    pub hi: f64,
    /// How much of it is known. A bound is drawn pale, with `≥` or `≤` before its value.
    pub known: Known,
}

impl Bar {
    /// A bar without interval.
    pub fn of(value: f64) -> Bar {
        Bar {
            value,
            lo: f64::NAN,
            hi: f64::NAN,
            known: Known::Value,
        }
    }

    /// A value with the ends of its interval.
    pub fn with_ends(value: f64, [lo, hi]: [f64; 2]) -> Bar {
        match Known::of_ends(value, [lo, hi]) {
            // Zero means that the lower end is unknown.
            Known::Interval => Bar {
                lo: if lo > 0.0 { lo } else { f64::NAN },
                hi,
                known: Known::Interval,
                ..Bar::of(value)
            },
            known => Bar {
                known,
                ..Bar::of(value)
            },
        }
    }

    /// Whether only a bound is known.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(self.known, Known::AtLeast(_) | Known::AtMost(_))
    }

    fn label(&self, quantity: Quantity) -> String {
        let text = quantity.show(self.value, 3);
        match self.known {
            Known::AtLeast(_) => format!("≥ {text}"),
            Known::AtMost(_) => format!("≤ {text}"),
            Known::Interval | Known::Value => text,
        }
    }
}

/// Bars side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// Label below the group.
    pub name: String,
    /// One per series, in their order.
    pub bars: Vec<Bar>,
}

/// Grouped bars with intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Alternative text, and the title of a file of its own.
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// Title of the vertical axis.
    pub y_title: String,
    /// What the bars measure.
    pub quantity: Quantity,
    /// Bars start at this value, and a line is drawn across it: 1 for a slowdown.
    pub reference: f64,
    /// The axis shows at least this range, so that small differences look small.
    pub at_least: (f64, f64),
    /// Whether the bars of a group are stacked from zero, as parts of a whole.
    pub stacked: bool,
    /// Name and look of each series.
    pub series: Vec<(String, usize)>,
    /// The groups, left to right.
    pub groups: Vec<BarGroup>,
}

impl BarChart {
    /// The axis: logarithmic if there are factors above 8, so that those near one stay visible.
    pub(crate) fn axis(&self, pixels: f64) -> Axis {
        if self.stacked {
            let sum = |g: &BarGroup| g.bars.iter().map(|b| b.value).sum::<f64>();
            let sums = self.groups.iter().map(sum).chain([0.0]);
            return Axis::linear(&self.y_title, self.quantity, sums, true).nice(pixels);
        }
        let values = || {
            self.groups
                .iter()
                .flat_map(|g| &g.bars)
                .flat_map(|b| [b.value, b.lo, b.hi])
                .filter(|v| v.is_finite())
                .chain([self.reference, self.at_least.0, self.at_least.1])
        };
        let positive = values().filter(|&v| v > 0.0);
        let (lo, hi) = positive.fold((f64::INFINITY, 0.0_f64), |(lo, hi), v| {
            (lo.min(v), hi.max(v))
        });
        if self.reference > 0.0 && hi / lo > 8.0 && values().all(|v| v > 0.0) {
            let values = values().chain([self.reference * 0.9]);
            Axis::log(&self.y_title, self.quantity, values).nice(pixels)
        } else {
            let room = (hi - lo).max(0.0) * 0.06;
            let values = values().chain([hi + room]);
            let axis = Axis::linear(&self.y_title, self.quantity, values, false);
            // The axis of a ratio starts at zero unless all values are close to the reference.
            let from_zero = self.reference > 0.0 && axis.hi > 1.6 * self.reference;
            let zero = if from_zero { 0.0 } else { axis.lo };
            Axis::linear(
                &self.y_title,
                self.quantity,
                [zero, axis.lo, axis.hi].into_iter(),
                false,
            )
            .nice(pixels)
        }
    }

    /// The picture.
    pub fn svg(&self, canvas: &Canvas) -> String {
        let mut svg = frame::begin(canvas, &self.title, &self.description);
        let keys: Vec<Key> = self
            .series
            .iter()
            .enumerate()
            .map(|(series, (name, slot))| Key {
                name: name.clone(),
                note: String::new(),
                slot: *slot,
                series,
                sample: Sample::Fill,
            })
            .collect();
        legend::define_hatches(&mut svg, self.series.iter().map(|s| s.1), &canvas.id);
        let head = frame::heading(&mut svg, canvas, &self.title);
        let pad = canvas.pad();
        let legend_width = canvas.width - 2.0 * pad;
        let top = head + 8.0 + legend::height(&keys, legend_width) + 26.0;
        let height = (canvas.height - top - 34.0).max(40.0);
        let axis = self.axis(height);
        let left = frame::label_room(&axis, height) + pad;
        let area = Area {
            x: left,
            y: top,
            width: (canvas.width - left - 12.0).max(40.0),
            height,
        };
        let shown = |b: &Bar| axis.at(b.value).is_some();
        if !self.groups.iter().flat_map(|g| &g.bars).any(shown) {
            frame::nothing(&mut svg, area);
            return svg.finish();
        }
        legend::draw(&mut svg, &keys, pad, head + 6.0, legend_width, &canvas.id);
        frame::y_title(&mut svg, canvas, &axis, top - 14.0);
        frame::y_axis(&mut svg, &axis, area);
        let slot_width = area.width / self.groups.len().max(1) as f64;
        for (i, group) in self.groups.iter().enumerate() {
            let x = area.x + slot_width * i as f64;
            self.draw_group(&mut svg, group, &axis, area, x, slot_width, canvas);
        }
        if let Some(t) = axis.at(self.reference) {
            let y = area.y + area.height * (1.0 - t);
            svg.tag("path")
                .attr("class", "axis")
                .attr("d", &frame::line(area.x, y, area.x + area.width, y))
                .empty();
        }
        svg.finish()
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a private step of `svg`: where and how one group is drawn"
    )]
    fn draw_group(
        &self,
        svg: &mut Svg,
        group: &BarGroup,
        axis: &Axis,
        area: Area,
        x: f64,
        width: f64,
        canvas: &Canvas,
    ) {
        let base = axis.at(self.reference).unwrap_or(0.0).clamp(0.0, 1.0);
        let to_y = |t: f64| area.y + area.height * (1.0 - t.clamp(0.0, 1.0));
        let columns = if self.stacked {
            1
        } else {
            self.series.len().max(1)
        };
        let step = (width * 0.78 / columns as f64).min(64.0);
        let upright = self.upright(step);
        let start = x + (width - step * columns as f64) / 2.0;
        let mut below = 0.0;
        for (series, (bar, (name, slot))) in group.bars.iter().zip(&self.series).enumerate() {
            let Some(mut t) = axis.at(bar.value) else {
                continue;
            };
            let (mut column, mut base) = (series, base);
            if self.stacked {
                (column, base) = (0, axis.at(below).unwrap_or(0.0));
                below += bar.value;
                t = axis.at(below).unwrap_or(base);
            }
            let left = start + step * column as f64 + step * 0.08;
            let bar_width = step * 0.84;
            let (y0, y1) = (to_y(base.max(t)), to_y(base.min(t)));
            svg.tag("g")
                .attr("class", "bar")
                .attr("data-s", &series.to_string())
                .attr("data-name", name)
                .attr("data-text", &self.say(group, *bar))
                .open();
            frame::tooltip(svg, canvas, &format!("{name}, {}", self.say(group, *bar)));
            let mut boxed = |class: &str, fill: Option<String>| {
                let mut tag = svg.tag("rect").attr("class", class);
                if let Some(fill) = fill {
                    tag = tag.attr("fill", &fill);
                }
                tag.num("x", left)
                    .num("y", y0)
                    .num("width", bar_width)
                    .num(
                        "height",
                        (y1 - y0).max(if self.stacked { 0.0 } else { 0.8 }),
                    )
                    .empty();
            };
            let look = if bar.is_bound() { "pale" } else { "area" };
            boxed(&format!("{look} f{slot}"), None);
            if legend::hatched(*slot) {
                boxed("", Some(format!("url(#{}-h{slot})", canvas.id)));
            }
            let label = bar.label(self.quantity);
            let label_width = if upright {
                LABEL
            } else {
                text_width(&label, LABEL)
            };
            let cap = match upright {
                true => ((bar_width - LABEL - 4.0) / 2.0).clamp(2.0, 5.0),
                false => (bar_width * 0.22).min(5.0),
            };
            // The value stands at the bar's end, beside the whisker if there is space. Above a whisker it would be read
            // as the end of the interval.
            let room = if upright { 1.0 } else { 4.0 };
            let beside = label_width + 2.0 * cap + room <= bar_width;
            let middle = match beside {
                true => left + bar_width - cap - 1.0,
                false => left + bar_width / 2.0,
            };
            let mut free = label_width + 2.0 <= step && !self.stacked;
            if let (Some(lo), Some(hi)) = (axis.at(bar.lo), axis.at(bar.hi)) {
                let (a, b) = (to_y(hi), to_y(lo));
                free &= beside || y0 - a < 4.0;
                svg.tag("path")
                    .attr("class", "whisker")
                    .attr(
                        "d",
                        &format!(
                            "{}{}{}",
                            frame::line(middle, a, middle, b),
                            frame::line(middle - cap, a, middle + cap, a),
                            frame::line(middle - cap, b, middle + cap, b)
                        ),
                    )
                    .empty();
            }
            if free && upright {
                // Letters stand on the left of the line that they are turned to.
                let at = match beside {
                    true => left + LABEL - 1.0,
                    false => left + bar_width / 2.0 + 4.0,
                };
                // A bar that reaches the top has no space above it.
                let length = text_width(&label, LABEL);
                let y = (y0 - 5.0).max(area.y + length - 7.0);
                svg.tag("text")
                    .attr("class", "note")
                    .num("x", at)
                    .num("y", y)
                    .attr(
                        "transform",
                        &format!("rotate(-90 {} {})", number(at), number(y)),
                    )
                    .text(&label);
            } else if free {
                let (at, anchor) = match beside {
                    true => (left, "start"),
                    false => (left + bar_width / 2.0, "middle"),
                };
                svg.tag("text")
                    .attr("class", "note")
                    .num("x", at)
                    .num("y", y0 - 5.0)
                    .attr("text-anchor", anchor)
                    .text(&label);
            }
            svg.close();
        }
        svg.tag("text")
            .num("x", x + width / 2.0)
            .num("y", area.y + area.height + 20.0)
            .attr("text-anchor", "middle")
            .text(&fit(&group.name, 12.0, width));
    }

    /// Whether values are written upwards, because columns of this width are too narrow for some label and whisker side
    /// by side.
    fn upright(&self, step: f64) -> bool {
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let widest = bars()
            .filter(|b| b.value.is_finite())
            .map(|b| text_width(&b.label(self.quantity), LABEL))
            .fold(0.0, f64::max);
        let whiskers = bars().any(|b| b.lo.is_finite() && b.hi.is_finite());
        let bar_width = step * 0.84;
        match whiskers {
            true => widest + 2.0 * (bar_width * 0.22).min(5.0) + 4.0 > bar_width,
            false => widest + 2.0 > step,
        }
    }

    /// A bar in words, for the tooltip.
    fn say(&self, group: &BarGroup, bar: Bar) -> String {
        let value = bar.label(self.quantity);
        if bar.lo.is_finite() && bar.hi.is_finite() {
            format!(
                "{}: {value} [{} … {}]",
                group.name,
                self.quantity.show(bar.lo, 3),
                self.quantity.show(bar.hi, 3)
            )
        } else {
            format!("{}: {value}", group.name)
        }
    }
}
