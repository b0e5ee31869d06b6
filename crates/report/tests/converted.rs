//! What of the runs goes into a page.

mod common;

use common::{results, results_and, results_with};
use swell_base::{Code, Direction, Warning};
use swell_experiment::store::{ModelFacts, RunWarning};
use swell_experiment::{Results, file};
use swell_report::data::ReportData;
use swell_report::{comparison_html, page, render, report_data};
use swell_verdict::{RunComparison, Verdict};

fn data(results: &Results) -> ReportData {
    report_data(results, &Verdict::of(results))
}

#[test]
fn late_runs_are_in_no_curve() {
    let dir = tempfile::tempdir().unwrap();
    let mut results = results(dir.path());
    let before = data(&results);
    let late = |cell: &swell_experiment::observe::Cell| {
        (&*cell.foreground, &*cell.background) == ("web", "poisson") && cell.replication > 0
    };
    for run in results.runs.iter_mut().filter(|run| late(&run.cell)) {
        for r in &mut run.observed.requests {
            r.last_byte = r.start + 10.0 * (r.last_byte - r.start);
        }
        let warning = Warning::warning(Code::EmulatorLate, "late");
        let cell = run.cell.clone();
        results
            .manifest
            .run_warnings
            .push(RunWarning { cell, warning });
    }
    let after = data(&results);
    let own = &after.foregrounds[0].conditions[2];
    assert_eq!((own.replications, own.runs), (1, 4));
    let longest = |d: &ReportData| d.foregrounds[0].conditions[2].steps.last().unwrap().0;
    assert!(longest(&after) <= longest(&before));
    assert!(own.band.is_empty(), "one run has no interval");
    assert_eq!(own.series.len(), 1);
    assert!(page(&after).contains("1 of 4 runs, the others were late"));
    // Its loads are those of all runs.
    assert_eq!(own.load, before.foregrounds[0].conditions[2].load);
}

#[test]
fn doubts_are_those_of_the_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let mut results = results(dir.path());
    let cells: Vec<_> = results.manifest.cells.clone();
    let of = |i: usize, text: &str| RunWarning {
        cell: cells[i].clone(),
        warning: Warning::warning(Code::InputNotRead, text),
    };
    let said = [of(0, "one"), of(0, "one"), of(3, "one"), of(1, "two")];
    results.manifest.run_warnings = said.to_vec();
    let empty = ModelFacts {
        warnings: vec![
            Warning::note("empty".into(), ""),
            Warning::warning(Code::Thinned, "few sessions"),
            Warning::warning(Code::LoadLeftOut, "a third"),
        ],
        ..ModelFacts::default()
    };
    let warnings = empty.warnings[1..].to_vec();
    results.manifest.models.insert("cbr".into(), empty);
    results.manifest.warnings.extend(warnings);
    let data = data(&results);
    // What says that the traffic is not that of the trace is no mere doubt about the model.
    for (code, of_model) in [(Code::Thinned, true), (Code::LoadLeftOut, false)] {
        let own = data.doubts.iter().find(|d| d.code == code).unwrap();
        assert_eq!(own.of_model, of_model, "{code}");
    }
    let own = data.doubts.iter().filter(|d| d.code == Code::InputNotRead);
    let own: Vec<_> = own.map(|d| (&*d.message, &*d.place, d.of_model)).collect();
    let first = "web against none, replication 1";
    let n = results.runs.len();
    assert_eq!(
        own,
        [
            ("one", &*format!("2 of {n} runs"), false),
            ("two", first, false)
        ]
    );
}

/// What a link carries is a share of its rate at the time.
#[test]
fn utilisation_is_of_the_rate_of_the_bin() {
    let dir = tempfile::tempdir().unwrap();
    let slower = "[[network.change]]\nat = \"6s\"\nevery = \"8s\"\nrate = \"8Mbit\"\ndirection = \"down\"\n\
                  [[network.change]]\nat = \"10s\"\nrate = \"20Mbit\"\n";
    let results = results_with(slower, 7, dir.path());
    let data = data(&results);
    let [up, down] = &data.foregrounds[0].conditions[2].series[0];
    assert!(down.rate_known && !down.rate.is_empty());
    for (i, &rate) in down.rate.iter().enumerate() {
        let from = down.start + i as f64 * down.bin;
        let slow = (6.0..9.99).contains(&(from + 1e-9)) || from + 1e-9 >= 14.0;
        let expected = if slow { 8e6 } else { 20e6 };
        assert!((rate / expected - 1.0).abs() < 1e-9, "{rate} at {from}");
    }
    let at = |t: f64, s: &swell_report::data::Series| s.rate[(t / s.bin) as usize];
    for (t, expected) in [(2.0, 5e6), (12.0, 20e6)] {
        assert!((at(t, up) / expected - 1.0).abs() < 1e-9, "{}", at(t, up));
    }
    let run = results.of("web", "poisson").next().unwrap();
    let bin = run
        .observed
        .bins
        .iter()
        .find(|b| b.direction == Direction::Down && b.time >= 15.0 && b.departed[1] > 0);
    let bin = bin.unwrap();
    let used = down.used[1][(bin.time / down.bin).round() as usize];
    let expected = bin.departed[1] as f64 * 8.0 / down.bin / 8e6;
    assert!((used / expected - 1.0).abs() < 1e-9, "{used} {expected}");
    for way in [&data.network.up, &data.network.down] {
        assert_eq!(way.last().map(String::as_str), Some("changes"), "{way:?}");
    }
    assert!(!page(&data).contains("initial rate"));
}

#[test]
fn a_mix_is_drawn_part_by_part() {
    let dir = tempfile::tempdir().unwrap();
    let mix = "name = \"both\"\nkind = \"mix\"\nof = [\"cbr\", \"poisson\"]";
    let data = data(&results_and(mix, dir.path()));
    let conditions = &data.foregrounds[0].conditions;
    for (condition, background) in conditions.iter().zip(&data.backgrounds) {
        for series in condition.series.iter().flatten() {
            let names: Vec<&str> = series.parts.iter().map(|p| &*p.name).collect();
            match background.name == "both" && series.used[1].iter().any(|&used| used > 0.0) {
                true => assert_eq!(names, ["cbr", "poisson"]),
                false => assert!(names.is_empty()),
            }
            for (i, used) in series.used[1].iter().enumerate() {
                let sum: f64 = series.parts.iter().map(|p| p.used[i]).sum();
                assert!(names.is_empty() || (sum / used - 1.0).abs() < 0.01);
            }
        }
    }
    let shown = page(&data);
    let both = shown
        .rfind(">both</text>")
        .expect("the timeline of the mix");
    assert!(shown[both..].contains("poisson"));
}

#[test]
fn a_delivery_trace_has_no_rate_over_time() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cell"), "1\n2\n4\n").unwrap();
    let trace = "[network.down]\ndeliveries = \"cell\"";
    let data = data(&results_with(trace, 7, dir.path()));
    assert!(!data.foregrounds[0].conditions[0].series[0][1].rate_known);
    assert_eq!(data.network.down[0], "trace of 9.00\u{a0}Mbit/s");
    let page = page(&data);
    assert!(
        page.contains(">Share of a fixed rate<")
            && page.contains("the mean rate of a delivery trace")
    );
}

#[test]
fn runs_of_several_directories_are_run_again_one_by_one() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, other] =
        [(7, &dirs[0]), (30, &dirs[1])].map(|(seed, d)| results_with("", seed, d.path()));
    let data = data(&one.join(other).unwrap());
    let lines: Vec<&str> = data.rerun.command.lines().collect();
    assert_eq!(lines.len(), 2);
    for (line, dir) in lines.iter().zip(&dirs) {
        let path = dir.path().display().to_string();
        assert!(
            line.contains(&format!("{path}/run/experiment.toml")),
            "{line}"
        );
    }
    let seeds = data.rerun.facts.iter().find(|(what, _)| what == "Seeds");
    assert_eq!(seeds.unwrap().1, "7 … 10, 30 … 33");
}

#[test]
fn only_virtual_time_gives_the_same_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut results = results(dir.path());
    for (backend, exact) in [("simulated", true), ("made-up", true), ("emulated", false)] {
        results.manifest.backend = backend.into();
        assert_eq!(render(&results).contains("bit for bit"), exact, "{backend}");
    }
}

/// The pictures of each foreground beside each background are in its section; what some run lacks is named.
#[test]
fn a_comparison_shows_every_condition() {
    let dir = tempfile::tempdir().unwrap();
    let all = results(dir.path());
    let mut fewer = all.clone();
    fewer.experiment.background.pop();
    let comparison = RunComparison::of([&all, &fewer], ["a", "b"]);
    let runs = [("a".to_owned(), all), ("b".to_owned(), fewer)];
    let page = comparison_html(&runs, &[comparison], "swell compare a b");
    // What the comparison and both runs say is one doubt.
    assert_eq!(page.matches(">few-replications</span>").count(), 1);
    let (_, rest) = page.split_once("id=\"verdict\"").unwrap();
    let (top, sections) = rest.split_once("id=\"doubts\"").unwrap();
    assert!(!top.contains("<figure") && !top.contains("<table"));
    assert!(
        top.contains("Not every run has these") && top.contains("<li>web beside poisson</li>"),
        "{top}"
    );
    let names = [
        "web beside none",
        "web beside cbr",
        "small &lt;&#x2f;script&gt; beside none",
    ];
    for (i, name) in names.iter().enumerate() {
        let (_, own) = sections
            .split_once(&format!("<section id=\"f{i}\">"))
            .unwrap();
        let (own, _) = own.split_once("</section>").unwrap();
        assert!(own.contains(&format!("<h2>{name}</h2>")), "{name}");
        assert!(own.contains(&format!("<figure id=\"f{i}-cdf\"")), "{name}");
        assert!(own.contains("<th scope=\"col\">Measure</th>"), "{name}");
    }
}

/// A number of a program is shown in its own unit, whatever it is called.
#[test]
fn numbers_of_a_program_are_shown_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut results = results(dir.path());
    let text = "name = \"x\"\nbackend = \"emulated\"\nnetwork = { rate = \"20Mbit\", rtt = \"40ms\" }\n\
                [[foreground]]\nname = \"web\"\nkind = \"program\"\nclient = { command = \"true\" }\n\
                reported = [{ name = \"cpu share\", better = \"lower\" }]\n\
                [[background]]\nname = \"none\"\nkind = \"none\"\n";
    results.experiment.foreground[0] = file::read(text, "x").unwrap().foreground.remove(0);
    for (i, run) in results.runs.iter_mut().enumerate() {
        run.observed.measures = vec![swell_experiment::measure::MeasureSample {
            measure: "cpu share".into(),
            value: 35.0 + i as f64,
            at: 3.0,
        }];
    }
    let data = data(&results);
    let row = data.foregrounds[0]
        .measures
        .iter()
        .find(|m| m.name == "cpu share");
    assert_eq!(row.unwrap().quantity, swell_report::Quantity::Plain);
}
