//! Pictures of models and runs, as files.

use std::path::Path;

use swell_experiment::{Results, Verdict, file};
use swell_report::ModelPicture;
use swell_report::chart::Canvas;
use swell_traffic::Model;

use crate::cli::ShowArgs;
use crate::fail::Fail;
use crate::out;

/// Pixels of a picture, and pixels of a PNG per one of those.
const SIZE: (f64, f64) = (700.0, 380.0);
const PNG_SCALE: f32 = 2.0;

/// The pictures of a run.
const OF_RUN: [&str; 4] = ["cdf", "slowdown", "scales", "network"];

/// Writes what was asked for of a model.
pub(crate) fn of_model(model: &Model, args: &ShowArgs) -> Result<(), Fail> {
    if let Some(path) = &args.html {
        save(path, swell_report::model_html(model).as_bytes())?;
    }
    let names: Vec<&str> = ModelPicture::ALL.iter().map(|p| p.name()).collect();
    draw(args, &names, |at| {
        ModelPicture::ALL[at].svg(model, &Canvas::file(SIZE.0, SIZE.1))
    })
}

/// Writes what was asked for of a run.
pub(crate) fn of_run(results: &Results, args: &ShowArgs) -> Result<(), Fail> {
    if let Some(path) = &args.html {
        save(path, swell_report::render(results).as_bytes())?;
    }
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let data = swell_report::report_data(results, &Verdict::of(results));
    let first = results
        .foregrounds()
        .first()
        .copied()
        .unwrap_or("")
        .to_owned();
    let canvas = Canvas::file(SIZE.0, SIZE.1);
    draw(args, &OF_RUN, |at| {
        let drawn = match OF_RUN[at] {
            "cdf" => swell_report::cdf_svg(&data, &first, &canvas),
            "slowdown" => swell_report::slowdown_svg(&data, &first, &canvas),
            "scales" => swell_report::lsd_svg(&data, &first, &canvas),
            _ => Some(swell_report::network_svg(&data, SIZE.0)),
        };
        drawn.unwrap_or_default()
    })
}

/// Draws the picture that was asked for as SVG and PNG.
fn draw(args: &ShowArgs, names: &[&str], svg: impl Fn(usize) -> String) -> Result<(), Fail> {
    let at = match &args.picture {
        None => 0,
        Some(name) => names.iter().position(|n| n == name).ok_or_else(|| {
            let (message, hint) = file::unknown_name("picture", name, names);
            Fail::usage(message).hint(hint)
        })?,
    };
    if let Some(path) = &args.svg {
        save(path, svg(at).as_bytes())?;
    }
    if let Some(path) = &args.png {
        let (bytes, doubt) = swell_report::png(&svg(at), PNG_SCALE).map_err(Fail::failed)?;
        if let Some(doubt) = doubt {
            out::warnings(&[doubt]);
        }
        save(path, &bytes)?;
    }
    Ok(())
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    out::write(path, bytes)?;
    out::say(&format!("written: {}", path.display()));
    Ok(())
}
