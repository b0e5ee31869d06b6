//! Tests the path from a run directory to the page.

mod common;

use common::results;
use swell_base::{Code, Direction};
use swell_experiment::Results;
use swell_report::chart::Canvas;
use swell_report::{
    cdf_svg, lsd_svg, network_svg, pdf, png, render, report_data, slowdown_svg, time_svg,
};
use swell_verdict::Statistic;
use swell_verdict::Verdict;

#[test]
fn a_run_directory_becomes_a_page_and_the_same_page_again() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = results(dir.path());
    let page = render(&fresh);
    let verdict = Verdict::of(&fresh);
    for needed in [
        "<h1>made up</h1>",
        "Numbers out of thin air.",
        "these numbers are made up",
        "small &lt;/script&gt;",
        "experiment.toml -o ",
        "-again --made-up",
        "20\u{a0}Mbit/s · 10\u{a0}ms · FIFO 1 BDP = 100\u{a0}kB",
        "5\u{a0}Mbit/s · 10\u{a0}ms · FIFO 50 packets",
        "name = &quot;made up&quot;",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
    assert_eq!(
        page.matches("<p class=\"sentence\">").count(),
        verdict.foregrounds.len()
    );
    let loaded = Results::load(&dir.path().join("run")).unwrap();
    assert_eq!(page, render(&loaded), "read back from disk, the same bytes");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html");
    std::fs::write(path, page).expect("the target directory can be written");
}

/// The page shows the numbers of the verdict rather than computing its own.
#[test]
fn tables_show_the_figures_of_the_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let results = results(dir.path());
    let verdict = Verdict::of(&results);
    let data = report_data(&results, &verdict);
    for (shown, judged) in data.foregrounds.iter().zip(&verdict.foregrounds) {
        for (condition, background) in shown.conditions.iter().zip(&judged.backgrounds) {
            assert_eq!(condition.samples, background.requests);
            for (i, q) in background.quantiles.iter().enumerate() {
                let shown_time = condition.quantiles[i].map(|t| t.value);
                assert_eq!(shown_time, q.seconds.map(|s| s.value));
                let shown_slowdown = condition.slowdown[i].map(|t| t.value);
                assert_eq!(shown_slowdown, q.slowdown.map(|s| s.value));
            }
            // The judged statistic is the same percentile.
            for j in background.judged.iter().filter(|j| j.measure == "time") {
                let Statistic::Percentile(p) = j.statistic else {
                    panic!("{j:?}")
                };
                let q = background.quantiles.iter().find(|q| q.p == p).unwrap();
                assert_eq!((j.with, Some(j.ratio)), (q.seconds, q.slowdown));
            }
            // The distribution function agrees with the median in the table to within one sample.
            let median = background.quantiles[1].seconds.unwrap().value;
            let at = |t: f64| {
                let below = condition.steps.iter().take_while(|s| s.0 <= t);
                below.last().map_or(0.0, |s| s.1)
            };
            let one = 1.5 / condition.samples as f64;
            assert!(
                (at(median) - 0.5).abs() <= one,
                "{} at {median}",
                at(median)
            );
            assert!(
                condition
                    .band
                    .iter()
                    .all(|b| b.1 <= b.2 && b.1 >= 0.0 && b.2 <= 1.0)
            );
            assert!(!condition.band.is_empty());
        }
    }
}

#[test]
fn single_pictures_are_files_and_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let results = results(dir.path());
    let data = report_data(&results, &Verdict::of(&results));
    let canvas = Canvas::file(720.0, 400.0);
    let pictures = [
        cdf_svg(&data, "web", &canvas).unwrap(),
        slowdown_svg(&data, "web", &canvas).unwrap(),
        lsd_svg(&data, "web", Direction::Down, &canvas).unwrap(),
        network_svg(&data, 720.0),
        time_svg(&data, "web", Direction::Down, 720.0).unwrap(),
    ];
    // Every background has its strips, with titled axes.
    for b in &data.backgrounds {
        assert!(pictures[4].contains(&format!(">{}</text>", b.name)));
    }
    assert_eq!(
        pictures[4].matches(">Utilisation<").count(),
        data.backgrounds.len()
    );
    for (name, svg) in ["cdf", "slowdown", "lsd", "network", "time"]
        .into_iter()
        .zip(pictures)
    {
        assert!(svg.starts_with("<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\""));
        // The page has the picture's size in points (72 per inch, 96 pixels per inch), and vectors instead of pixels.
        let (page, _) = pdf(&svg).unwrap();
        let text = String::from_utf8_lossy(&page);
        assert!(text.starts_with("%PDF-1.7") && !text.contains("/Subtype/Image"));
        let number = |side: &str| {
            let (_, rest) = svg.split_once(&format!("{side}=\"")).unwrap();
            rest.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        let (_, media) = text.split_once("/MediaBox[0 0 ").unwrap();
        let sides: Vec<f64> = media
            .split(']')
            .next()
            .unwrap()
            .split(' ')
            .map(|n| n.parse().unwrap())
            .collect();
        for (points, side) in sides.iter().zip([" width", " height"]) {
            assert!(
                (points - 0.75 * number(side)).abs() < 0.01,
                "{points} {side}"
            );
        }
        let (bytes, warning) = png(&svg, 1.0).unwrap();
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
        std::fs::write(path, &bytes).expect("the target directory can be written");
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(u32::from_be_bytes(bytes[16..20].try_into().unwrap()), 720);
        if let Some(warning) = warning {
            assert_eq!(warning.code, Code::NoFonts);
            swell_needs::skip(format_args!("text of pictures: {}", warning.message));
        }
    }
    assert_eq!(cdf_svg(&data, "no such", &canvas), None);
    assert!(pdf("no picture").is_err());
    assert!(png("no picture", 1.0).is_err());
    assert!(png(&network_svg(&data, 720.0), 100.0).is_err(), "too large");
}
