//! Pictures and the report: one self-contained HTML page that can be read offline, in print and without script.
//!
//! [`render`] turns the [`Results`] of an experiment into the page. The intermediate form is plain data
//! ([`data::ReportData`], from [`report_data`]), so that pages and pictures can be made and tested
//! without an experiment:
//!
//! ```
//! use swell_report::data::ReportData;
//! let page = swell_report::page(&ReportData { title: "a < b".into(), ..ReportData::default() });
//! assert!(page.contains("<title>a &lt; b</title>"));
//! ```
//!
//! Single pictures are SVG files that include their style: [`cdf_svg`], [`lsd_svg`] and [`slowdown_svg`] of results,
//! [`ModelPicture`] of a traffic model, [`study_svg`] of a study ([`study_html`] is its page). With the feature `png`,
//! `png` and `pdf` convert a picture to these formats. [`vega`], [`ModelPicture::vega`] and [`study_vega`] give the same
//! figures as Vega-Lite specifications for further editing.
//! [`chart`] is the drawing itself: axes, curves, bars and timelines, independent of networks.
//! Decisions:
//!
//! * Every chart is drawn twice, for wide and for narrow pages, and a style rule picks one. This costs bytes but needs
//!   no script.
//! * The script reads values back from the drawn paths and the axes' attributes. No data is in the page twice, and user
//!   text is never part of the script.
//! * Equal input gives equal bytes: no clock, no hash maps, logarithms from `libm`. (PNG depends on
//!   the machine's fonts.)
//!
//! Not in this crate: statistics (`swell-stats`) and the verdict (`swell-experiment`).

pub mod chart;
mod compare;
mod convert;
pub mod data;
mod figures;
mod human;
mod model;
mod network;
mod page;
mod palette;
mod parts;
#[cfg(feature = "png")]
mod png;
#[cfg(test)]
mod sample;
mod study;
mod svg;
mod vega;
mod waterfall;

use swell_base::Direction;
use swell_experiment::Results;
use swell_verdict::Verdict;

pub use compare::comparison_html;
pub use convert::report_data;
pub use human::Quantity;
pub use model::{ModelPicture, model_html};
pub use page::page;
pub use palette::Role;
#[cfg(feature = "png")]
pub use png::{PngError, pdf, png};
pub use study::{study_height, study_html, study_svg, study_vega};

use chart::Canvas;
use data::{ForegroundData, ReportData};
use parts::Named;

/// The page about `results`.
pub fn render(results: &Results) -> String {
    page(&report_data(results, &Verdict::of(results)))
}

/// Completion times of the foreground called `name`, one distribution function per background. `None` if there is no
/// such foreground, or it made no requests.
pub fn cdf_svg(data: &ReportData, name: &str, canvas: &Canvas) -> Option<String> {
    let named = named_of(data, name)?;
    filled(figures::cdf_chart(&named, "").svg(canvas))
}

/// Slowdown of the foreground called `name` at the quantiles of [`data::QUANTILES`].
pub fn slowdown_svg(data: &ReportData, name: &str, canvas: &Canvas) -> Option<String> {
    let named = named_of(data, name)?;
    filled(figures::slowdown_chart(&named, &data.against).svg(canvas))
}

/// Measures of the foreground called `name` as multiples of those without background, beside every background. `None` if
/// there is no such foreground, or nothing was compared.
pub fn effects_svg(data: &ReportData, name: &str, canvas: &Canvas) -> Option<String> {
    filled(effects_of(data, name)?.svg(canvas))
}

/// The name of the picture that shows the answer about the foreground called `name`: `cdf`, or `effects` where no request
/// finished but something else was compared.
pub fn answer_picture(data: &ReportData, name: &str) -> &'static str {
    let finished = |f: &ForegroundData| f.conditions.iter().any(|c| !c.steps.is_empty());
    match data.foregrounds.iter().find(|f| f.name == name) {
        Some(f) if !finished(f) && effects_of(data, name).is_some() => "effects",
        _ => "cdf",
    }
}

fn effects_of(data: &ReportData, name: &str) -> Option<chart::BarChart> {
    let foreground = data.foregrounds.iter().find(|f| f.name == name)?;
    let named = parts::named(data, foreground, &parts::slots(data));
    figures::effects_chart(&named, &foreground.measures, &data.against)
}

/// A picture, unless it only says that there is nothing to show.
fn filled(svg: String) -> Option<String> {
    let nothing = format!("class=\"{}\"", chart::NOTHING);
    (!svg.contains(&nothing)).then_some(svg)
}

/// Log-scale diagrams of the backgrounds that ran against the foreground called `name`.
/// `Down` is towards the clients.
pub fn lsd_svg(
    data: &ReportData,
    name: &str,
    direction: Direction,
    canvas: &Canvas,
) -> Option<String> {
    let named = named_of(data, name)?;
    let curves: Vec<_> = named
        .iter()
        .map(|n| (n.name, n.slot, &n.condition.energies[direction][..]))
        .filter(|c| c.2.iter().any(|e| e.y.is_finite()))
        .collect();
    filled(figures::energy_chart(&curves, "").svg(canvas))
}

/// The pictures of a run that [`vega`] can draw, in the order of the page.
pub const VEGA_PICTURES: [&str; 9] = [
    "cdf",
    "effects",
    "slowdown",
    "scales",
    "scales-up",
    "network",
    "time",
    "time-up",
    "waterfall",
];

/// A picture of the foreground called `name` as a Vega-Lite specification: one of [`VEGA_PICTURES`]. `None` if there is
/// no such foreground or picture, or no data.
pub fn vega(data: &ReportData, name: &str, picture: &str) -> Option<serde_json::Value> {
    let named = named_of(data, name)?;
    let direction = Direction::of(!picture.ends_with("-up"));
    match picture {
        "cdf" => {
            let chart = figures::cdf_chart(&named, "");
            let any = chart.curves.iter().any(|c| !c.points.is_empty());
            any.then(|| chart.vega())
        }
        "effects" => Some(effects_of(data, name)?.vega()),
        "slowdown" => {
            let chart = figures::slowdown_chart(&named, &data.against);
            let mut bars = chart.groups.iter().flat_map(|g| &g.bars);
            (bars.any(|b| b.value.is_finite())).then(|| chart.vega())
        }
        "scales" | "scales-up" => {
            let curves: Vec<_> = named
                .iter()
                .map(|n| (n.name, n.slot, &n.condition.energies[direction][..]))
                .filter(|c| c.2.iter().any(|e| e.y.is_finite()))
                .collect();
            (!curves.is_empty()).then(|| figures::energy_chart(&curves, "").vega())
        }
        "time" | "time-up" => {
            let (charts, _) = figures::timeline_charts("", &named, 0, direction)?;
            Some(vega::timelines(&charts))
        }
        "waterfall" => Some(waterfall::chart(&named)?.vega()),
        "network" => Some(network::vega(&data.network, network::WIDE)),
        _ => None,
    }
}

/// What requests of the foreground called `name` waited for. `None` if there is no such foreground, or the experiment
/// does not record it.
pub fn waterfall_svg(data: &ReportData, name: &str, canvas: &Canvas) -> Option<String> {
    let named = named_of(data, name)?;
    Some(waterfall::chart(&named)?.svg(canvas))
}

/// The bottleneck over time for the foreground called `name`: one timeline per background, stacked, of this width.
/// `None` if there is no such foreground, or no data.
pub fn time_svg(data: &ReportData, name: &str, direction: Direction, width: f64) -> Option<String> {
    let named = named_of(data, name)?;
    let (charts, _) = figures::timeline_charts("", &named, 0, direction)?;
    Some(figures::below_each_other(&charts, width))
}

/// The network as a drawing of this width; its height follows.
pub fn network_svg(data: &ReportData, width: f64) -> String {
    let height = network::height(&data.network, width);
    network::svg(&data.network, &Canvas::file(width, height))
}

/// The backgrounds of the foreground called `name`. `None` if there is no such foreground.
fn named_of<'a>(data: &'a ReportData, name: &str) -> Option<Vec<Named<'a>>> {
    let foreground = data.foregrounds.iter().find(|f| f.name == name)?;
    Some(parts::named(data, foreground, &parts::slots(data)))
}
