//! Pictures of models and runs, as files.

use std::path::Path;

use swell_base::{Direction, Warning};
use swell_experiment::{Results, file};
use swell_report::ModelPicture;
use swell_report::chart::Canvas;
use swell_report::data::ReportData;
use swell_traffic::Model;
use swell_verdict::Verdict;

use crate::cli::{ShowArgs, Size};
use crate::fail::Fail;
use crate::{interrupt, out, report};

/// Default size of a picture in pixels, 96 per inch as in CSS.
const SIZE: (f64, f64) = (700.0, 380.0);
/// PNG pixels per picture pixel.
#[cfg(feature = "png")]
const PNG_SCALE: f32 = 2.0;

/// The pictures of a run that can be drawn as files.
const DRAWN: [&str; 9] = [
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

/// Writes the requested pictures of a model.
pub(crate) fn of_model(model: &Model, args: &ShowArgs) -> Result<(), Fail> {
    if let Some(path) = &args.html {
        save(path, swell_report::model_html(model).as_bytes())?;
    }
    let names: Vec<&str> = ModelPicture::ALL.iter().map(|p| p.name()).collect();
    let picture = ModelPicture::ALL[asked(args, &names)?];
    let (width, height) = size(args);
    draw(args, || picture.svg(model, &Canvas::file(width, height)))?;
    specify(args, || Ok(picture.vega(model)))
}

/// Writes the requested pictures of a run.
pub(crate) fn of_run(results: &Results, verdict: &Verdict, args: &ShowArgs) -> Result<(), Fail> {
    if let Some(path) = &args.html {
        save(path, swell_report::render(results).as_bytes())?;
    }
    if [&args.svg, &args.png, &args.pdf, &args.vega]
        .iter()
        .all(|a| a.is_none())
    {
        return Ok(());
    }
    let data = swell_report::report_data(results, verdict);
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
        let picture = chosen(args, &swell_report::VEGA_PICTURES, &data, foreground)?;
        specify(args, || {
            swell_report::vega(&data, foreground, picture).ok_or_else(|| {
                empty(foreground, picture, &swell_report::VEGA_PICTURES, |p| {
                    swell_report::vega(&data, foreground, p).is_some()
                })
            })
        })?;
        if [&args.svg, &args.png, &args.pdf]
            .iter()
            .all(|a| a.is_none())
        {
            return Ok(());
        }
    }
    let picture = chosen(args, &DRAWN, &data, foreground)?;
    if let (Some(Size(_, Some(_))), "network" | "time" | "time-up") = (args.size, picture) {
        let message = format!("--size: `{picture}` is as high as what it shows needs");
        return Err(Fail::usage(message).hint("give its width alone, such as 7in"));
    }
    let (width, height) = size(args);
    let canvas = Canvas::file(width, height);
    let drawn = |name: &str| match name {
        "cdf" => swell_report::cdf_svg(&data, foreground, &canvas),
        "effects" => swell_report::effects_svg(&data, foreground, &canvas),
        "slowdown" => swell_report::slowdown_svg(&data, foreground, &canvas),
        "scales" => swell_report::lsd_svg(&data, foreground, Direction::Down, &canvas),
        "scales-up" => swell_report::lsd_svg(&data, foreground, Direction::Up, &canvas),
        "time" => swell_report::time_svg(&data, foreground, Direction::Down, width),
        "time-up" => swell_report::time_svg(&data, foreground, Direction::Up, width),
        "waterfall" => swell_report::waterfall_svg(&data, foreground, &canvas),
        _ => Some(swell_report::network_svg(&data, width)),
    };
    let svg =
        drawn(picture).ok_or_else(|| empty(foreground, picture, &DRAWN, |p| drawn(p).is_some()))?;
    draw(args, || svg.clone())
}

/// The requested picture of a foreground; by default the one that shows the answer.
fn chosen<'a>(
    args: &ShowArgs,
    names: &[&'a str],
    data: &ReportData,
    foreground: &str,
) -> Result<&'a str, Fail> {
    match args.picture {
        None => Ok(swell_report::answer_picture(data, foreground)),
        Some(_) => Ok(names[asked(args, names)?]),
    }
}

/// The error that a picture would be empty. It names the pictures that are not.
fn empty(foreground: &str, picture: &str, names: &[&str], shown: impl Fn(&str) -> bool) -> Fail {
    let fail = Fail::usage(format!("{foreground} has nothing to show in `{picture}`"));
    let others: Vec<&str> = names.iter().copied().filter(|n| shown(n)).collect();
    match others.is_empty() {
        true => fail,
        false => fail.hint(format!("`--picture` can be: {}", others.join(", "))),
    }
}

/// Copies the requested picture of a study, which `swell study` drew into its directory, or draws it in another size. Lists the names without one.
pub(crate) fn of_study(dir: &Path, args: &ShowArgs, json: bool) -> Result<(), Fail> {
    let folder = dir.join(groundswell::study::PICTURES);
    let unread = |path: &Path, e| Fail::failed(format!("{}: {e}", path.display()));
    let mut names: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|e| unread(&folder, e))? {
        let path = entry.map_err(|e| unread(&folder, e))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let (Some(stem), true) = (stem, path.extension().is_some_and(|e| e == "svg")) {
            names.push(stem.to_owned());
        }
    }
    names.sort();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let place = asked(args, &known)?;
    // In a size of their own they are drawn, not copied. A specification has no size.
    let copied = [
        (&args.svg, "svg"),
        (&args.png, "png"),
        (&args.pdf, "pdf"),
        (&args.vega, "vl.json"),
    ];
    let wanted = copied.into_iter().filter(|_| args.size.is_none());
    if let Some(page) = &args.html {
        let own = dir.join(report::PAGE);
        save(page, &std::fs::read(&own).map_err(|e| unread(&own, e))?)?;
    }
    let name = known.get(place);
    let none = || Fail::usage(format!("{}: no pictures", folder.display()));
    if args.size.is_some() {
        sized(&folder, name.ok_or_else(none)?, args)?;
    }
    for (path, ending) in wanted {
        let Some(path) = path else { continue };
        let name = name.ok_or_else(none)?;
        let own = folder.join(format!("{name}.{ending}"));
        let bytes = std::fs::read(&own).map_err(|e| unread(&own, e))?;
        save(path, &bytes)?;
    }
    if printed(args) {
        return Ok(());
    }
    if json {
        out::json(&serde_json::json!({ "pictures": names }));
    } else {
        out::data(&format!("pictures of the study: {}", names.join(", ")));
    }
    Ok(())
}

/// Draws the picture of a study in the requested size, from the numbers beside it.
fn sized(folder: &Path, name: &str, args: &ShowArgs) -> Result<(), Fail> {
    let path = folder.join(format!("{name}.json"));
    let hint = "the same `swell study` again draws it anew; runs that are there are not repeated";
    let text = std::fs::read(&path).map_err(|e| {
        let fail = Fail::usage(format!("--size: {}: {e}", path.display()));
        fail.hint(hint)
    })?;
    let picture: swell_study::Picture = serde_json::from_slice(&text).map_err(|e| {
        let fail = Fail::usage(format!("--size: {}: {e}", path.display()));
        fail.hint(hint)
    })?;
    let (width, mut height) = size(args);
    if !matches!(args.size, Some(Size(_, Some(_)))) {
        let own = swell_report::study_height(&picture, &Canvas::file(width, height));
        height = own.unwrap_or(height);
    }
    draw(args, || {
        swell_report::study_svg(&picture, &Canvas::file(width, height))
    })
}

/// Size of the picture in pixels. Narrow pictures are taller in proportion, because text keeps its size.
fn size(args: &ShowArgs) -> (f64, f64) {
    let Some(Size(width, height)) = args.size else {
        return SIZE;
    };
    let proportion = if width < 500.0 { 0.8 } else { SIZE.1 / SIZE.0 };
    (width, height.unwrap_or(width * proportion))
}

/// The index of the requested picture.
fn asked(args: &ShowArgs, names: &[&str]) -> Result<usize, Fail> {
    let Some(name) = &args.picture else {
        return Ok(0);
    };
    names.iter().position(|n| n == name).ok_or_else(|| {
        let (message, hint) = file::unknown_name("picture", name, names);
        Fail::usage(message).hint(hint)
    })
}

/// Writes the picture as SVG, PNG and PDF, as requested.
fn draw(args: &ShowArgs, svg: impl Fn() -> String) -> Result<(), Fail> {
    if let Some(path) = &args.svg {
        save(path, svg().as_bytes())?;
    }
    for (path, encode) in [(&args.png, png as Encode), (&args.pdf, pdf)] {
        if let Some(path) = path {
            let (bytes, doubt) = encode(&svg())?;
            if let Some(doubt) = doubt {
                out::warnings(&[doubt]);
            }
            save(path, &bytes)?;
        }
    }
    Ok(())
}

/// Converts a picture to another format, with an optional warning.
type Encode = fn(&str) -> Result<(Vec<u8>, Option<Warning>), Fail>;

/// Converts a picture to PDF, with an optional warning.
#[cfg(feature = "png")]
pub(crate) fn pdf(svg: &str) -> Result<(Vec<u8>, Option<Warning>), Fail> {
    swell_report::pdf(svg).map_err(Fail::failed)
}

/// The error that PDF is not supported.
#[cfg(not(feature = "png"))]
pub(crate) fn pdf(_svg: &str) -> Result<(Vec<u8>, Option<Warning>), Fail> {
    Err(Fail::usage("this program was built without PDF").hint("--svg writes the same picture"))
}

/// Converts a picture to PNG, with an optional warning.
#[cfg(feature = "png")]
pub(crate) fn png(svg: &str) -> Result<(Vec<u8>, Option<Warning>), Fail> {
    swell_report::png(svg, PNG_SCALE).map_err(|error| {
        let too_large = matches!(error, swell_report::PngError::Size { .. });
        let fail = Fail::failed(error);
        match too_large {
            true => fail.hint("--pdf and --svg have no largest size"),
            false => fail,
        }
    })
}

/// The error that PNG is not supported.
#[cfg(not(feature = "png"))]
pub(crate) fn png(_svg: &str) -> Result<(Vec<u8>, Option<Warning>), Fail> {
    Err(Fail::usage("this program was built without PNG").hint("--svg writes the same picture"))
}

/// Writes the Vega-Lite specification, if requested.
fn specify(
    args: &ShowArgs,
    spec: impl Fn() -> Result<serde_json::Value, Fail>,
) -> Result<(), Fail> {
    match &args.vega {
        None => Ok(()),
        Some(path) => save(path, format!("{:#}\n", spec()?).as_bytes()),
    }
}

/// Whether a picture goes to standard output, which then has nothing else.
pub(crate) fn printed(args: &ShowArgs) -> bool {
    let files = [&args.html, &args.svg, &args.png, &args.pdf, &args.vega];
    files.into_iter().flatten().any(|path| out::is_stdout(path))
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Fail> {
    if out::is_stdout(path) {
        out::bytes(bytes);
        return Ok(());
    }
    interrupt::write(path, bytes)?;
    out::say(&format!("written: {}", path.display()));
    Ok(())
}
