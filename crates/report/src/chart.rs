//! Charts as hand-written SVG.
//!
//! [`XyChart`] draws curves over two axes (steps, lines, bands), [`BarChart`] grouped bars with intervals, [`Timeline`] a
//! stack of strips that share a time axis, [`HeatMap`] panels of cells whose colour is a ratio. Each is plain data with a
//! `svg` method; [`Canvas`] gives the size and the destination. A chart never fails: values that cannot be drawn (a NaN, a
//! zero on a logarithmic axis) are left out, and an empty chart says so.
//!
//! Elements that the page's script uses carry `data-` attributes: the axes of a plot, the number and name of a series.
//! Without the script the picture is the same.

mod axis;
mod bars;
mod frame;
mod heat;
mod legend;
mod timeline;
mod xy;

pub use axis::{Axis, Scale, Tick};
pub use bars::{Bar, BarChart, BarGroup};
pub use heat::{HeatCell, HeatMap, Places};
pub(crate) use heat::{colour, hex};
pub(crate) use timeline::Columns;
pub use timeline::{Layer, LayerKind, Strip, Timeline};
pub use xy::{Curve, Shape, XyChart};

pub(crate) use frame::{NOTHING, begin, line as straight};

/// Where a chart is drawn and how large.
#[derive(Clone, Debug, PartialEq)]
pub struct Canvas {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Prefix of every `id`; unique in the page. Letters, digits and `-`.
    pub id: String,
    /// Whether the chart is a file of its own, which includes its style and background.
    pub standalone: bool,
}

impl Canvas {
    /// A canvas for a file of its own.
    pub fn file(width: f64, height: f64) -> Canvas {
        Canvas {
            width,
            height,
            id: "chart".into(),
            standalone: true,
        }
    }

    /// Padding around the picture; a page has its own.
    pub(crate) fn pad(&self) -> f64 {
        if self.standalone { 12.0 } else { 1.0 }
    }

    /// A canvas for a page, which has the style already.
    pub(crate) fn inline(id: &str, width: f64, height: f64) -> Canvas {
        Canvas {
            width,
            height,
            id: id.into(),
            standalone: false,
        }
    }
}

#[cfg(test)]
mod tests;
