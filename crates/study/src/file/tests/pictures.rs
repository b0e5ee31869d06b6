//! Curves, points, tables, and captures as columns.

use super::*;

/// The small study with curves, points and tables.
fn study() -> String {
    let quick = STUDY.replace("values = [0.5, 1]", "values = [0.5]");
    let quick = quick.replace("at = { load = [1] }\n", "");
    quick.replace(
        "seeds = 2",
        "seeds = 1\nfixed = true\nset = ['run.keep.waits=true']",
    ) + r#"
[[measure]]
name = "wait"
value = "down.background.wait"
unit = "seconds"
[[measure]]
name = "residual"
value = "down.background.residual / (1.0 - down.background.load)"
[[measure]]
name = "nothing"
value = "up.foreground.loss / 0.0 * 0.0"
[[figure]]
name = "wait"
title = "Wait"
section = "More"
x_title = "load"
y = "wait - run(`fifo`).wait"
y_title = "more"
curve = "residual"
curve_label = "theory"
[[figure]]
name = "series"
title = "Series"
section = "More"
lines = ["fifo"]
columns = ["slow"]
x_title = "time"
points = { back = "up.background.series(1, 2)", there = "down.background.series(1, 2)" }
y_title = "rate"
[[table]]
title = "Waits"
section = "More"
where = "column == `fast`"
cell = [
  { head = "wait", value = "wait", unit = "seconds" },
  { head = "nothing", value = "nothing" },
  { head = "in words", value = "`at ${load}`" },
]
"#
}

fn more(study: &Study) -> &crate::Section {
    let found = study.sections.iter().find(|s| s.title == "More");
    found.expect("a section")
}

#[test]
fn figures_and_tables_show_more_than_one_number_of_a_run() {
    let (_dir, path) = written(&study());
    let read = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let numbers: Vec<Vec<f64>> = (0..read.groups().count())
        .map(|i| read.run_one(i, 1).unwrap())
        .collect();
    let made = read.study(&numbers);
    assert!(made.doubts.is_empty(), "{:?}", made.doubts);
    let more = more(&made);
    let names: Vec<&str> = more.pictures.iter().map(|p| &*p.name).collect();
    assert_eq!(names, ["wait-slow", "wait-fast", "series-slow"]);

    // Each line has its curve, with another look.
    let wait = &more.pictures[0].lines;
    let of = |name: &str| wait.iter().find(|l| l.name == name).expect("a line");
    assert_eq!(wait.len(), 4);
    assert_eq!(of("fifo").points[0].1.value, 0.0, "less itself");
    let place = read.measures().position(|m| m == "residual").unwrap();
    let (line, curve) = (of("codel"), of("codel, theory"));
    assert_eq!(curve.points[0].1.value, numbers[1][place]);
    assert!(line.measured && !curve.measured && line.slot != curve.slot);

    // The run's own series: ten bins of 100 ms, one direction silent.
    let series = &more.pictures[2].lines;
    assert_eq!([&*series[0].name, &*series[1].name], ["back", "there"]);
    assert_eq!(series[1].points.len(), 10);
    assert!(series[0].points.iter().all(|p| p.1.value == 0.0));
    let bits: f64 = series[1].points.iter().map(|p| p.1.value * 0.1).sum();
    assert!(
        (200e3..900e3).contains(&bits),
        "a second of 0.5 Mbit/s: {bits}"
    );

    let table = &more.tables[0];
    assert_eq!((more.tables.len(), table.rows.len()), (1, 2));
    assert_eq!(table.head, ["", "wait", "nothing", "in words"]);
    assert_eq!(table.rows[1][0], "codel");
    assert!(table.rows[1][1].ends_with("ms"), "{:?}", table.rows[1]);
    assert_eq!(table.rows[1][2..], ["–", "at 0.5"]);
}

#[test]
fn curves_of_several_runs_of_a_line_say_which() {
    let figure = r#"
[[figure]]
name = "each"
title = "Each"
section = "More"
columns = ["slow"]
where = "line == `codel` || load > 0.3"
x_title = "time"
points = { back = "[[0, load]]" }
y_title = "rate"
"#;
    let text = study().replace("values = [0.5]", "values = [0.25, 0.5]") + figure;
    let text = text.replace("wait - run(`fifo`).wait", "wait");
    let (_dir, path) = written(&text);
    let read = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let numbers = vec![vec![1.0; read.measures().count()]; read.groups().count()];
    let made = read.study(&numbers);
    let pictures = &more(&made).pictures;
    let lines = |name: &str| {
        let picture = pictures.iter().find(|p| p.name == name).expect("a picture");
        let each = picture.lines.iter().map(|l| (l.name.clone(), l.slot));
        each.collect::<Vec<_>>()
    };
    let expected = [
        ("fifo", 1),
        ("codel, load = 0.25", 2),
        ("codel, load = 0.5", 2),
    ];
    assert_eq!(lines("each-slow"), expected.map(|(n, s)| (n.to_owned(), s)));
    // For a single line, each curve has its own colour.
    let alone = [
        ("back, load = 0.25", 1),
        ("there, load = 0.25", 2),
        ("back, load = 0.5", 3),
        ("there, load = 0.5", 4),
    ];
    assert_eq!(lines("series-slow"), alone.map(|(n, s)| (n.to_owned(), s)));
}

#[test]
fn runs_that_are_simulated_again_are_few_and_can_be_stopped() {
    let values: Vec<String> = (1..=21)
        .map(|i| (f64::from(i) / 32.0).to_string())
        .collect();
    let text = |n: usize| {
        let alone = study().replace("wait - run(`fifo`).wait", "wait");
        alone.replacen(
            "values = [0.5]",
            &format!("values = [{}]", values[..n].join(", ")),
            1,
        )
    };
    assert!(read(&text(20)).is_ok());
    let why = read(&text(21)).expect_err("too many");
    assert!(why.contains("21 runs in a picture of points"), "{why}");
    assert!(why.contains("key figure[2].points"), "{why}");

    let (_dir, path) = written(&study());
    let read = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let numbers = vec![vec![1.0; read.measures().count()]; read.groups().count()];
    assert!(read.runs_again());
    assert!(read.study_unless(&numbers, &|| true).is_none());
    // A stop is honoured even if it comes while a run is under way.
    let asked = std::sync::atomic::AtomicU32::new(0);
    let later = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 0;
    assert!(read.study_unless(&numbers, &later).is_none());
    assert!(read.study_unless(&numbers, &|| false).is_some());
}

/// Runs a study in a directory and returns its series.
fn series_after(path: &std::path::Path) -> (FileStudy, crate::Picture) {
    let read = FileStudy::read(path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let options = Options {
        file: path.with_file_name("runs.csv"),
        jobs: 2,
        fresh: false,
        shard: None,
    };
    let GridOutcome::Complete(numbers) = read.run(&options, &|_| {}, &|| false).unwrap() else {
        panic!("nobody stopped it");
    };
    let made = read.study(&numbers);
    assert!(made.doubts.is_empty(), "{:?}", made.doubts);
    let mut pictures = more(&made).pictures.iter();
    let series = pictures.find(|p| p.name == "series-slow").cloned();
    (read, series.expect("a picture"))
}

#[test]
fn what_was_simulated_for_its_numbers_is_not_simulated_again_for_a_picture() {
    // The runs to draw may depend on facts known before any run, or on the numbers of runs.
    for (filter, at_once) in [
        ("", true),
        ("where = \"load < 1\"\n", true),
        ("where = \"arrived.mean > 0.0\"\n", false),
    ] {
        let text = study().replacen("points = {", &format!("{filter}points = {{"), 1);
        let (_dir, path) = written(&text);
        let alone = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(alone.runs_again());
        let numbers = (0..alone.groups().count()).map(|i| alone.run_one(i, 1).unwrap());
        let again = alone.study(&numbers.collect::<Vec<_>>());
        let again = more(&again).pictures.last().expect("a picture");
        assert!(!alone.runs_again(), "once is enough");

        let (first, series) = series_after(&path);
        assert_eq!(series, *again);
        assert!(!first.runs_again());
        // Kept points are drawn as they are; others are simulated.
        let kept = path.with_file_name("runs.points.csv");
        let table = std::fs::read_to_string(&kept).unwrap();
        assert_eq!(table.lines().count(), 1 + 2, "{filter}");
        let (head, rest) = table.split_once('\n').unwrap();
        let changed: String = rest.lines().map(|l| format!("{l} 1.95 12345\n")).collect();
        std::fs::write(&kept, format!("{head}\n{changed}")).unwrap();
        let (_, other) = series_after(&path);
        for (line, before) in other.lines.iter().zip(&series.lines) {
            assert_eq!(line.points.len(), before.points.len() + 1, "{filter}");
        }
        std::fs::remove_file(&kept).unwrap();
        assert_eq!(series_after(&path).1, series);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), table, "{filter}");
        // If it was known which runs are drawn, nothing remains to be stopped after the runs.
        let fresh = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            file: path.with_file_name("other.csv"),
            jobs: 1,
            fresh: true,
            shard: None,
        };
        fresh.run(&options, &|_| {}, &|| false).unwrap();
        assert_eq!(fresh.runs_again(), !at_once, "{filter}");
        let made = vec![vec![1.0; fresh.measures().count()]; fresh.groups().count()];
        let stopped = fresh.study_unless(&made, &|| true);
        assert_eq!(stopped.is_some(), at_once, "{filter}");
    }
}

#[test]
fn what_points_would_not_show_is_refused() {
    for (key, value) in [
        ("x", "'load'"),
        ("at", "[1]"),
        ("curve", "'('"),
        ("curve_label", "'theory'"),
        ("reference", "'x'"),
        ("reference_label", "'theory'"),
    ] {
        let text = study().replacen("points = {", &format!("{key} = {value}\npoints = {{"), 1);
        let why = read(&text).expect_err(key);
        assert!(why.contains(&format!("leave out {key}\n")), "{why}");
        assert!(why.contains(&format!("key figure[2].{key}")), "{why}");
    }
}

#[test]
fn mistakes_in_them_have_their_place() {
    for (from, to, expected) in [
        ("y = \"wait - run", "points = {}\ny = \"wit - run", "`wit`"),
        (
            "curve = \"residual\"",
            "curve = \"residul\"",
            "figure[1].curve",
        ),
        ("curve_label = \"theory\"\n", "", "has a curve_label"),
        (
            "points = {",
            "y = \"wait\"\npoints = {",
            "either y or points",
        ),
        ("lines = [\"fifo\"]\n", "by = \"column\"\n", "drawn by line"),
        (
            "\"up.background.series(1, 2)\"",
            "\"7\"",
            "not a list of [x, y]",
        ),
        (
            "\"up.background.series(1, 2)\"",
            "\"[[1]]\"",
            "a point is [x, y]",
        ),
        ("value = \"nothing\"", "value = \"nothin\"", "table[0].cell"),
        ("column == `fast`", "column", "true or false"),
        (
            "run.keep.waits=true",
            "run.keep.flows=true",
            "waits are not kept",
        ),
    ] {
        let text = study();
        assert!(text.contains(from), "{from}");
        let why = read(&text.replacen(from, to, 1)).expect_err(to);
        assert!(why.contains(expected), "{to}: {why}");
    }
}

/// A capture of raw IPv4: UDP packets of 100 bytes from a private host and of 400 bytes back, a tenth of a
/// second apart.
fn pcap(packets: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for n in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101] {
        out.extend(u32::to_le_bytes(n));
    }
    let inside = [10, 0, 0, 1];
    let outside = [198, 51, 100, 7];
    for i in 0..packets {
        let (len, from, to) = match i % 2 {
            0 => (100_u16, inside, outside),
            _ => (400, outside, inside),
        };
        let micros = i * 100_000;
        for n in [micros / 1_000_000, micros % 1_000_000, 28, u32::from(len)] {
            out.extend(u32::to_le_bytes(n));
        }
        let [high, low] = len.to_be_bytes();
        out.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0]);
        out.extend(from);
        out.extend(to);
        let [udp_high, udp_low] = (len - 20).to_be_bytes();
        out.extend([0x10, 0, 0x10, 0, udp_high, udp_low, 0, 0]);
    }
    out
}

const CAPTURE: &str = r#"
[capture]
set = [
  'background.noise={ name = "noise", kind = "replay", phase = "0s", once = true }',
  "background.noise.trace=${file}",
  "background.noise.reversed=${rate_up > rate_down}",
  "run.duration=${ceiling(length) + 1}s",
]
"#;

#[test]
fn a_capture_is_one_more_column() {
    // Remove the axis's rate, to which a replay would be stretched.
    let text = STUDY.replace("set = [\"background.noise.rate=${load * base}Mbit\"]\n", "");
    let (dir, path) = written(&(text.clone() + CAPTURE));
    let trace = dir.path().join("mon day.1.pcap");
    std::fs::write(&trace, pcap(50)).unwrap();
    let overrides = Overrides {
        captures: vec![trace.clone()],
        ..Overrides::default()
    };
    let read = FileStudy::read(&path, &overrides).unwrap_or_else(|e| panic!("{e}"));
    let last = read.groups().last().unwrap();
    assert_eq!(last.name, "mon-day, codel, load = 1");
    assert!(last.assignments.contains(&"run.duration=6s".to_owned()));
    assert!(
        last.assignments
            .contains(&"background.noise.reversed=false".to_owned())
    );
    // Traffic down after the first second of warm-up: twenty packets of the capture, and pages.
    let place = read
        .groups()
        .position(|g| g.name == "mon-day, fifo, load = 1");
    let arrived = read.run_one(place.unwrap(), 1).unwrap()[0];
    assert!(arrived > 20.0, "{arrived}");

    let none = vec![vec![1.0; read.measures().count()]; read.groups().count() * 2];
    let facts = read.study(&none).facts;
    let fact = facts.iter().find(|f| f.0 == "capture mon-day");
    assert_eq!(
        fact.expect("a fact").1,
        "4.9 s, 25 packets from inside out at 4 kbit/s and 25 back at 16 kbit/s"
    );

    let (_other, without) = written(&text);
    let refused = FileStudy::read(&without, &overrides).expect_err("no template");
    assert!(
        refused.to_string().contains("takes no captures"),
        "{refused}"
    );
    std::fs::write(&trace, b"nothing of the kind").unwrap();
    let why = FileStudy::read(&path, &overrides).expect_err("no capture");
    let said = why.to_string();
    assert_eq!(said.matches("mon day.1.pcap").count(), 1, "{said}");

    // A device and a directory stand for pipes: a pipe would need a writer if this failed.
    for other in ["/dev/null", "/"] {
        let special = Overrides {
            captures: vec![other.into()],
            ..Overrides::default()
        };
        let refusal = FileStudy::read(&path, &special).expect_err("no capture");
        assert!(refusal.to_string().contains("not a file"), "{refusal}");
    }
}

/// The points that figures need are determined once, and this can be stopped.
#[test]
fn finding_what_figures_show_can_be_stopped() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let text = study().replacen("points = {", "where = \"load < 1\"\npoints = {", 1);
    let (_dir, path) = written(&text);
    let read = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let asked = AtomicUsize::new(0);
    let groups = read.groups().count();
    let stop = |after: usize| move |n: usize| n > after;
    // The stop function is called for every combination and answers true at the second.
    let second = stop(1);
    let wants = read.wants(&|| second(asked.fetch_add(1, Ordering::Relaxed) + 1));
    assert!(wants.is_none());
    assert_eq!(asked.swap(0, Ordering::Relaxed), 2);
    let options = Options {
        file: path.with_file_name("runs.csv"),
        jobs: 1,
        fresh: false,
        shard: None,
    };
    let ended = read.run(&options, &|_| {}, &|| true).unwrap();
    let none = GridOutcome::Interrupted {
        finished: 0,
        runs: groups,
    };
    assert_eq!(ended, none);
    let count = || {
        asked.fetch_add(1, Ordering::Relaxed);
        false
    };
    assert_eq!(read.wants(&count).map(<[_]>::len), Some(groups));
    assert_eq!(asked.load(Ordering::Relaxed), groups);
    // The cached answer needs no second search.
    assert!(read.runs_again());
    assert!(read.wants(&|| true).is_some());
}

#[test]
fn figures_are_not_without_number() {
    let figure = "[[figure]]\nname = \"fN\"\ntitle = \"F\"\nx_title = \"load\"\ny = \"arrived\"\ny_title = \"packets\"\n";
    // The small study has one figure already.
    let with = |n: usize| {
        let more: String = (1..n)
            .map(|i| figure.replace("fN", &format!("f{i}")))
            .collect();
        read(&format!("{STUDY}\n{more}"))
    };
    assert!(with(200).is_ok());
    let why = with(201).expect_err("too many");
    assert!(why.contains("201 figures, at most 200"), "{why}");
    let points = |n: usize| {
        let each: Vec<String> = (0..n).map(|i| format!("e{i} = \"[[0, {i}]]\"")).collect();
        let text = study();
        let (head, rest) = text.split_once("points = {").unwrap();
        let (_, tail) = rest.split_once('}').unwrap();
        read(&format!("{head}points = {{ {} }}{tail}", each.join(", ")))
    };
    assert!(points(20).is_ok());
    let many = points(21).expect_err("too many");
    assert!(
        many.contains("21 expressions in a figure, at most 20"),
        "{many}"
    );
    assert!(many.contains("key figure[2].points"), "{many}");
}

/// Files in the directory of another study are not touched.
#[test]
fn points_of_another_study_are_left_alone() {
    let (dir, path) = written(&study());
    let (runs, points) = (
        "another,table\n",
        "another,settings,expression,points\nof,hours\n",
    );
    let file = dir.path().join("runs.csv");
    std::fs::write(&file, runs).unwrap();
    let kept = dir.path().join("runs.points.csv");
    std::fs::write(&kept, points).unwrap();
    let read = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut options = Options {
        file,
        jobs: 1,
        fresh: false,
        shard: None,
    };
    let refused = read.run(&options, &|_| {}, &|| true);
    assert!(matches!(refused, Err(GridError::Table { line: 1, .. })));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), points);
    options.fresh = true;
    assert!(read.run(&options, &|_| {}, &|| true).is_ok());
    assert_ne!(std::fs::read_to_string(&kept).unwrap(), points);
}
