//! Pictures of models and runs, as files.

use std::path::Path;

use swell_base::Warning;
use swell_experiment::{Results, Verdict, file};
use swell_report::ModelPicture;
use swell_report::chart::Canvas;
use swell_traffic::Model;

use crate::cli::ShowArgs;
use crate::fail::Fail;
use crate::out;

/// Pixels of a picture, and pixels of a PNG per one of those.
const SIZE: (f64, f64) = (700.0, 380.0);
#[cfg(feature = "png")]
const PNG_SCALE: f32 = 2.0;

/// The pictures of a run that are drawn as files.
const DRAWN: [&str; 4] = ["cdf", "slowdown", "scales", "network"];

/// Writes what was asked for of a model.
pub(crate) fn of_model(model: &Model, args: &ShowArgs) -> Result<(), Fail> {
    if let Some(path) = &args.html {
        save(path, swell_report::model_html(model).as_bytes())?;
    }
    let names: Vec<&str> = ModelPicture::ALL.iter().map(|p| p.name()).collect();
    let picture = ModelPicture::ALL[asked(args, &names)?];
    draw(args, || picture.svg(model, &Canvas::file(SIZE.0, SIZE.1)))?;
    specify(args, || Ok(picture.vega(model)))
}

/// Writes what was asked for of a run.
pub(crate) fn of_run(results: &Results, args: &ShowArgs) -> Result<(), Fail> {
    if let Some(path) = &args.html {
        save(path, swell_report::render(results).as_bytes())?;
    }
    if args.svg.is_none() && args.png.is_none() && args.vega.is_none() {
        return Ok(());
    }
    let data = swell_report::report_data(results, &Verdict::of(results));
    let names = results.foregrounds();
    let foreground = match &args.foreground {
        None => names.first().copied().unwrap_or(""),
        Some(name) if names.contains(&name.as_str()) => name,
        Some(name) => {
            let (message, hint) = file::unknown_name("foreground", name, &names);
            return Err(Fail::usage(message).hint(hint));
        }
    };
    if args.vega.is_some() {
        let picture = swell_report::VEGA_PICTURES[asked(args, &swell_report::VEGA_PICTURES)?];
        return specify(args, || {
            swell_report::vega(&data, foreground, picture).ok_or_else(|| {
                Fail::usage(format!("{foreground} has nothing to show in `{picture}`"))
            })
        });
    }
    let picture = DRAWN[asked(args, &DRAWN)?];
    let canvas = Canvas::file(SIZE.0, SIZE.1);
    draw(args, || {
        let drawn = match picture {
            "cdf" => swell_report::cdf_svg(&data, foreground, &canvas),
            "slowdown" => swell_report::slowdown_svg(&data, foreground, &canvas),
            "scales" => swell_report::lsd_svg(&data, foreground, &canvas),
            _ => Some(swell_report::network_svg(&data, SIZE.0)),
        };
        drawn.unwrap_or_default()
    })
}

/// Which of the pictures was asked for.
fn asked(args: &ShowArgs, names: &[&str]) -> Result<usize, Fail> {
    let Some(name) = &args.picture else {
        return Ok(0);
    };
    names.iter().position(|n| n == name).ok_or_else(|| {
        let (message, hint) = file::unknown_name("picture", name, names);
        Fail::usage(message).hint(hint)
    })
}

/// Draws the picture as SVG and PNG, where that was asked for.
fn draw(args: &ShowArgs, svg: impl Fn() -> String) -> Result<(), Fail> {
    if let Some(path) = &args.svg {
        save(path, svg().as_bytes())?;
    }
    if let Some(path) = &args.png {
        let (bytes, doubt) = png(&svg())?;
        if let Some(doubt) = doubt {
            out::warnings(&[doubt]);
        }
        save(path, &bytes)?;
    }
    Ok(())
}

/// A picture as PNG, with what to doubt of it.
#[cfg(feature = "png")]
pub(crate) fn png(svg: &str) -> Result<(Vec<u8>, Option<Warning>), Fail> {
    swell_report::png(svg, PNG_SCALE).map_err(Fail::failed)
}

/// Says that there is no PNG.
#[cfg(not(feature = "png"))]
pub(crate) fn png(_svg: &str) -> Result<(Vec<u8>, Option<Warning>), Fail> {
    Err(Fail::usage("this program was built without PNG").hint("--svg writes the same picture"))
}

/// Writes the specification, where that was asked for.
fn specify(
    args: &ShowArgs,
    spec: impl Fn() -> Result<serde_json::Value, Fail>,
) -> Result<(), Fail> {
    match &args.vega {
        None => Ok(()),
        Some(path) if out::is_stdout(path) => {
            out::json(&spec()?);
            Ok(())
        }
        Some(path) => save(path, format!("{:#}\n", spec()?).as_bytes()),
    }
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    out::write(path, bytes)?;
    out::say(&format!("written: {}", path.display()));
    Ok(())
}
