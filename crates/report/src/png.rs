//! Pictures as PNG and PDF.

use std::sync::{Arc, LazyLock};

use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt as _, SvgSettings};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Options, Tree};
use swell_base::{Code, Warning};

/// Largest side of a picture, pixels: 16 Mpx at most, 64 MiB while drawing.
const LARGEST: u32 = 4096;

/// Why a picture could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The text is not an SVG picture.
    #[error("no SVG picture: {0}")]
    Svg(#[from] resvg::usvg::Error),
    /// The picture has no area or too much of it.
    #[error("cannot draw {width} x {height} pixels; the largest side is {LARGEST}")]
    Size {
        /// Pixels across.
        width: f32,
        /// Pixels down.
        height: f32,
    },
    /// The picture could not be encoded.
    #[error("cannot encode the picture: {0}")]
    Encode(String),
}

/// The fonts of this machine; read once.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_system_fonts();
    Arc::new(fonts)
});

/// Draws a picture of this crate (made with [`Canvas::file`](crate::chart::Canvas::file)) at `scale` pixels per unit; 2
/// suits a screen, 4 a printer. Text uses the fonts of the machine, so the bytes may differ between machines. The
/// result has a warning if there are no fonts.
///
/// # Errors
/// If `svg` is not a picture, or has more than 4096 pixels on a side.
pub fn png(svg: &str, scale: f32) -> Result<(Vec<u8>, Option<Warning>), PngError> {
    let tree = parsed(svg)?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let fits = |side: f32| (1.0..=LARGEST as f32).contains(&side);
    let size = PngError::Size { width, height };
    if !fits(width) || !fits(height) {
        return Err(size);
    }
    let Some(mut pixels) = Pixmap::new(width.ceil() as u32, height.ceil() as u32) else {
        return Err(size);
    };
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    let bytes = pixels
        .encode_png()
        .map_err(|e| PngError::Encode(e.to_string()))?;
    Ok((bytes, no_fonts()))
}

/// Converts a picture of this crate to a PDF page of its own size, 96 units to the inch. Lines stay vectors, and text
/// stays text, with the machine's fonts embedded. The result has a warning if there are no fonts.
///
/// # Errors
/// If `svg` is not a picture.
pub fn pdf(svg: &str) -> Result<(Vec<u8>, Option<Warning>), PngError> {
    let tree = parsed(svg)?;
    let (width, height) = (tree.size().width(), tree.size().height());
    let points = Size::from_wh(width * POINTS, height * POINTS);
    let size = points.ok_or(PngError::Size { width, height })?;
    let settings = PageSettings::from_wh(size.width(), size.height());
    let mut document = krilla::Document::new();
    let mut page = document.start_page_with(settings.ok_or(PngError::Size { width, height })?);
    let mut surface = page.surface();
    surface
        .draw_svg(&tree, size, SvgSettings::default())
        .ok_or_else(|| PngError::Encode("it has what PDF has not".into()))?;
    surface.finish();
    page.finish();
    let bytes = document
        .finish()
        .map_err(|e| PngError::Encode(format!("{e:?}")))?;
    Ok((bytes, no_fonts()))
}

/// Points per unit of a picture: 72 points and 96 units to the inch.
const POINTS: f32 = 0.75;

fn parsed(svg: &str) -> Result<Tree, PngError> {
    let mut options = Options {
        fontdb: Arc::clone(&FONTS),
        ..Options::default()
    };
    options.font_family = ["Liberation Sans", "DejaVu Sans", "Arial", "Helvetica"]
        .into_iter()
        .find(|family| {
            FONTS
                .faces()
                .any(|f| f.families.iter().any(|(n, _)| n == family))
        })
        .map_or_else(
            || {
                let first = FONTS.faces().find_map(|f| f.families.first());
                first.map_or_else(String::new, |(name, _)| name.clone())
            },
            str::to_owned,
        );
    Ok(Tree::from_str(svg, &options)?)
}

fn no_fonts() -> Option<Warning> {
    FONTS.is_empty().then(|| {
        Warning::warning(
            Code::NoFonts,
            "no fonts were found on this machine, so the picture has no text; install a package \
             such as fonts-dejavu-core, or write SVG",
        )
    })
}
