use std::path::PathBuf;

use swell_base::Code;
use swell_experiment::run::grid::{GridError, GridOutcome, Options};

use super::*;
use crate::Study;

mod atlas;
mod bars;
mod filler;
mod harpoon;
mod heat;
mod hops;
mod measures;
mod papers;
mod pictures;
mod reference;
mod router;
mod rules;
mod with;

const EXPERIMENT: &str = r#"
name = "small"
[network]
rate = "2Mbit"
delay = "5ms"
[[foreground]]
name = "page"
kind = "web"
object = "10kB"
think = "200ms"
[[background]]
name = "noise"
kind = "poisson"
rate = "1Mbit"
[run]
warmup = "1s"
duration = "6s"
"#;

const STUDY: &str = r#"
name = "small"
title = "Small"
experiment = "experiment.toml"
seeds = 2
with = { base = 1 }
[[axis]]
name = "load"
values = [0.5, 1]
set = ["background.noise.rate=${load * base}Mbit"]
[[column]]
name = "slow"
set = ["network.rate=2Mbit"]
[[column]]
name = "fast"
set = ["network.rate=4Mbit"]
[[line]]
name = "fifo"
[[line]]
name = "codel"
set = ["network.qdisc=codel"]
at = { load = [1] }
[[measure]]
name = "arrived"
value = "down.arrived"
bar = { relative = 0.5 }
[[measure]]
name = "each"
value = "arrived / load"
[[claim]]
id = "C1"
claim = "more load, more packets"
value = 'run("fifo", #{load: 1}).arrived / run("fifo", #{load: 0.5}).arrived'
holds = "value.mean > 1.0"
[[figure]]
name = "arrived"
title = "Arrived"
x_title = "load"
y = "arrived"
y_title = "packets"
reference = "100 * x"
"#;

/// A directory with an experiment and a study.
fn written(study: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("experiment.toml"), EXPERIMENT).unwrap();
    let path = dir.path().join("study.toml");
    std::fs::write(&path, study).unwrap();
    (dir, path)
}

fn read(study: &str) -> Result<FileStudy, String> {
    let (_dir, path) = written(study);
    FileStudy::read(&path, &Overrides::default()).map_err(|e| e.to_string())
}

/// The error message for the study with `from` replaced by `to`.
fn said(from: &str, to: &str) -> String {
    assert!(STUDY.contains(from), "{from}");
    read(&STUDY.replacen(from, to, 1)).expect_err(to)
}

#[test]
fn combinations_are_columns_lines_and_axes() {
    let study = read(STUDY).unwrap();
    let names: Vec<&str> = study.groups().map(|g| &*g.name).collect();
    let expected = [
        "slow, fifo, load = 0.5",
        "slow, fifo, load = 1",
        "slow, codel, load = 1",
        "fast, fifo, load = 0.5",
        "fast, fifo, load = 1",
        "fast, codel, load = 1",
    ];
    assert_eq!(names, expected);
    let sets = &study.groups().nth(5).unwrap().assignments;
    let set = [
        "network.rate=4Mbit",
        "background.noise.rate=1Mbit",
        "network.qdisc=codel",
    ];
    assert_eq!(*sets, set);
}

#[test]
fn errors_have_their_place_and_say_what_to_do() {
    for (from, to, expected) in [
        (
            "seeds = 2",
            "sedes = 2",
            &[
                "unknown key `sedes`",
                "study.toml:5:1",
                "did you mean `seeds`?",
            ][..],
        ),
        (
            "seeds = 2",
            "seeds = 'two'",
            &["expected a whole number", "key seeds"],
        ),
        (
            "values = [0.5, 1]",
            "values = []",
            &["an axis has values", "key axis[0].values"],
        ),
        (
            "values = [0.5, 1]",
            "values = [0.5, 1, 1.0]",
            &["1 is there already", "key axis[0].values[2]"],
        ),
        (
            "values = [0.5, 1]",
            "values = [0.5, 1]\nquick = [0, -0.0]",
            &["-0 is there already", "key axis[0].quick[1]"],
        ),
        (
            "at = { load = [1] }",
            "at = [{ load = [1] }, { load = [1, 0.5, 1] }]",
            &["1 is there already", "key line[1].at[1].load[2]"],
        ),
        (
            "at = { load = [1] }",
            "at = [{ load = [1] }, { load = \"1\" }]",
            &["string \"1\", expected a sequence", "study.toml:22:32"],
        ),
        (
            "at = { load = [1] }",
            "quick = { load = [nan] }",
            &["NaN is not a value of an axis", "key line[1].quick.load[0]"],
        ),
        (
            "name = \"load\"",
            "name = \"up\"",
            &["not a name that expressions can use"],
        ),
        (
            "name = \"codel\"",
            "name = \"fifo\"",
            &["two lines called `fifo`", "key line[1].name"],
        ),
        (
            "id = \"C1\"\n",
            "id = \"C1\"\nfigures = [\"sizes\"]\n",
            &["no figure is called `sizes`", "figures"],
        ),
        (
            "${load * base}",
            "${load * bass}",
            &["nothing here is called `bass`", "study.toml:10:8"],
        ),
        (
            "${load * base}Mbit",
            "${load",
            &["`${` without its `}`", "key axis[0].set[0]"],
        ),
        (
            "${load * base}Mbit",
            "fast",
            &["fifo, load = 0.5", "background[0].rate"],
        ),
        (
            "network.qdisc=codel",
            "network.qdisk=codel",
            &["unknown key `qdisk`", "did you mean"],
        ),
        (
            "at = { load",
            "at = { lode",
            &[
                "no axis is called `lode`",
                "did you mean `load`?",
                "key line[1].at",
            ],
        ),
        (
            "down.arrived",
            "down.arived",
            &["key measure[0].value", "arived"],
        ),
        (
            "arrived / load",
            "arrived / ",
            &["key measure[1].value", "at character"],
        ),
        (
            "value.mean > 1.0",
            "value > 1.0",
            &["key claim[0].holds", "compare its .mean"],
        ),
        (
            "value.mean > 1.0",
            "value.mean",
            &["write what is true or false"],
        ),
        (
            "run(\"fifo\", #{load: 1})",
            "run(\"fife\", #{load: 1})",
            &["no line is called `fife`"],
        ),
        (
            ".arrived / run",
            ".arived / run",
            &["key claim[0].value", "`arived`"],
        ),
        ("y = \"arrived\"", "y = \"arived\"", &["key figure[0].y"]),
        ("100 * x", "100 * z", &["key figure[0].reference", "`z`"]),
        (
            "experiment.toml",
            "nowhere.toml",
            &["there is no file", "key experiment"],
        ),
        (
            "100 * x",
            "let n = 0; while true { n += 1 } n",
            &["key figure[0].reference", "steps"],
        ),
    ] {
        let text = said(from, to);
        for part in expected {
            assert!(text.contains(part), "{to}: no {part:?} in\n{text}");
        }
    }
}

#[test]
fn names_that_expressions_know_are_not_given_twice() {
    let no_name = "not a name that expressions can use";
    for name in ["seconds", "run", "runs", "reference"] {
        for (of, key) in [
            ("load", "key axis[0].name"),
            ("each", "key measure[1].name"),
        ] {
            let text = said(&format!("name = \"{of}\""), &format!("name = \"{name}\""));
            assert!(text.contains(no_name) && text.contains(key), "{text}");
        }
    }
    for (name, why) in [
        ("run", no_name),
        ("seconds", no_name),
        ("\"a b\"", no_name),
        ("load", "`load` is an axis already"),
        ("each", "`each` is a measure already"),
    ] {
        for (from, key) in [
            ("with = { base = 1", "with."),
            ("name = \"fast\"\n", "column[1].with."),
            ("name = \"codel\"\n", "line[1].with."),
        ] {
            let to = match from.starts_with("with") {
                true => format!("{from}, {name} = 1"),
                false => format!("{from}with = {{ {name} = 1 }}\n"),
            };
            let text = said(from, &to);
            assert!(text.contains(why), "{name}: {text}");
            let key = format!("key {key}{}", name.trim_matches('"'));
            assert!(text.contains(&key), "{key}: {text}");
        }
    }
}

#[test]
fn a_study_cannot_grow_without_bound() {
    let many: Vec<String> = (0..500).map(|i| i.to_string()).collect();
    let axis = |name: &str| {
        format!(
            "[[axis]]\nname = \"{name}\"\nvalues = [{}]\n",
            many.join(",")
        )
    };
    let text = STUDY.replacen(
        "[[column]]",
        &format!("{}{}{}[[column]]", axis("a"), axis("b"), axis("c")),
        1,
    );
    assert!(read(&text).unwrap_err().contains("more than 200000 runs"));
}

#[test]
fn a_run_is_what_the_simulator_makes_of_the_resolved_experiment() {
    use swell_experiment::{Backend as _, Plan, Simulator, file};
    let (dir, path) = written(STUDY);
    let study = FileStudy::read(&path, &Overrides::default()).unwrap();
    let options = Options {
        file: dir.path().join("runs.csv"),
        jobs: 2,
        fresh: false,
        shard: None,
    };
    let numbers = || match study.run(&options, &|_| {}, &|| false).unwrap() {
        GridOutcome::Complete(numbers) => numbers,
        GridOutcome::Interrupted { .. } | GridOutcome::Shard { .. } => Vec::new(),
    };
    let ours = numbers();
    // Columns x (2 + 1) x seeds; the second time, they come from the table.
    assert_eq!(ours.len(), 12);
    assert_eq!(numbers(), ours);
    let group = study.groups().nth(2).unwrap();
    let mut set = group.assignments.clone();
    set.push("run.seed=2".into());
    set.push("run.replications=1".into());
    let text = file::override_keys(EXPERIMENT, &set).unwrap();
    let plan = Plan::resolve(&text, "experiment.toml", dir.path()).unwrap();
    let spec = plan.spec(&plan.cells[0], &Default::default()).unwrap();
    let observed = Simulator.run(&spec, &|_| {}, &|| false).unwrap();
    let arrived: u64 = observed.links[1].arrived_packets.iter().sum();
    assert!(arrived > 0);
    // The group's second seed.
    assert_eq!(ours[2 * 2 + 1][0], arrived as f64);

    let page = study.study(&ours);
    assert_eq!(page.ledgers[0].columns, ["slow", "fast"]);
    assert_eq!(page.ledgers[0].count(crate::Verdict::Holds), 2);
    let pictures: Vec<&str> = (page.sections.iter().flat_map(|s| &s.pictures))
        .map(|p| &*p.name)
        .collect();
    assert_eq!(pictures, ["arrived-slow", "arrived-fast"]);
    assert_eq!(
        page.sections[0].pictures[0].lines.len(),
        3,
        "reference, fifo, codel"
    );
}

#[test]
fn a_verdict_on_one_seed_is_tentative() {
    let words = |seeds: u16| {
        let overrides = format!("seeds = {seeds}\n");
        let study = read(&STUDY.replacen("seeds = 2\n", &overrides, 1)).unwrap();
        assert_eq!(study.seeds(), seeds);
        let cells = study.cells();
        let numbers = cells.iter().map(|c| vec![10.0 * c.group_load(), 1.0]);
        let page = study.study(&numbers.collect::<Vec<_>>());
        page.ledgers[0].entries[0].findings[0].words()
    };
    assert_eq!(words(1), "tentative: holds");
    assert_eq!(words(2), "holds");
}

#[test]
fn a_claim_about_a_number_that_a_run_lacks_is_not_tested() {
    let study = read(STUDY).unwrap();
    // In the first column, runs at half the load have no packets to count.
    let numbers = study.cells().into_iter().enumerate().map(|(i, cell)| {
        let none = i < study.cells().len() / 2 && cell.group_load() < 0.7;
        vec![
            if none {
                f64::NAN
            } else {
                10.0 * cell.group_load()
            },
            1.0,
        ]
    });
    let page = study.study(&numbers.collect::<Vec<_>>());
    let findings = &page.ledgers[0].entries[0].findings;
    assert_eq!(findings[0].verdict, crate::Verdict::NotTested);
    assert_eq!(findings[0].detail, "a run has no number for arrived");
    assert_eq!(findings[1].verdict, crate::Verdict::Holds);
    let codes: Vec<&str> = page.doubts.iter().map(|d| d.code.as_str()).collect();
    assert!(!codes.contains(&"claim-failed"), "{:?}", page.doubts);
}

#[test]
fn commands_quote_paths_that_need_it() {
    let (dir, path) = written(STUDY);
    let spaced = dir.path().join("my studies");
    std::fs::create_dir(&spaced).unwrap();
    for name in ["study.toml", "experiment.toml"] {
        std::fs::copy(path.with_file_name(name), spaced.join(name)).unwrap();
    }
    let study = FileStudy::read(&spaced.join("study.toml"), &Overrides::default()).unwrap();
    let command = study.groups().next().unwrap().command(1);
    let name = |file: &str| format!("'{}'", spaced.join(file).display());
    let begins = format!("swell run {} --set", name("experiment.toml"));
    assert!(command.starts_with(&begins), "{command}");
    let whole = format!("swell study file {} --seeds 2", name("study.toml"));
    assert_eq!(study.command, whole);
}

/// Packets that arrived beside a background that takes its rate from `noise`, or consists of both.
fn arrived_beside(background: &str) -> f64 {
    let (_dir, path) = written(STUDY);
    let matched = EXPERIMENT.to_owned()
        + "[[background]]\nname = \"same\"\nkind = \"cbr\"\nrate = \"match:noise\"\n\
           [[background]]\nname = \"both\"\nkind = \"mix\"\nof = [\"noise\", \"same\"]\n";
    std::fs::write(path.with_file_name("experiment.toml"), matched).unwrap();
    let one = format!("seeds = 1\nbackground = \"{background}\"");
    let text = STUDY.replacen("seeds = 2", &one, 1);
    std::fs::write(&path, text).unwrap();
    let study = FileStudy::read(&path, &Overrides::default()).unwrap();
    let options = Options {
        file: path.with_file_name("runs.csv"),
        jobs: 1,
        fresh: false,
        shard: None,
    };
    let GridOutcome::Complete(numbers) = study.run(&options, &|_| {}, &|| false).unwrap() else {
        panic!("nobody stopped it");
    };
    numbers[1][0]
}

#[test]
fn what_a_background_rests_on_is_measured_first_and_plays() {
    // 1 Mbit/s of 1000 bytes for 5 s, and pages: an unmeasured background would be silent.
    let same = arrived_beside("same");
    assert!(same > 625.0, "{same}");
    let both = arrived_beside("both");
    assert!(both > 1250.0, "{both}");
}

#[test]
fn numbers_are_held_against_a_reference() {
    let (dir, path) = written(&format!(
        "{STUDY}\n[reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\nexempt = 'line == \"codel\"'\n\
         [[reference.cause]]\nwhere = 'load > 0.7'\nname = \"load\"\nwhat = \"never asked for\"\n\
         [[reference.cause]]\nwhere = 'measure == \"arrived\"'\nname = \"made up\"\nwhat = \"by this test\"\n"
    ));
    let table = "column,line,load,seeds,arrived,arrived_sd\n\
                 slow,fifo,1,3,1,0.1\nslow,fifo,0.5,3,1e9,0\nslow,codel,1,3,5,\n";
    std::fs::write(dir.path().join("ref.csv"), table).unwrap();
    let study = FileStudy::read(&path, &Overrides::default()).unwrap();
    // Every run has ten packets, or twenty at twice the load. The second row says which numbers are missing.
    let numbers: Vec<Vec<f64>> = study
        .cells()
        .iter()
        .map(|c| vec![if c.group_load() > 0.7 { 1.2 } else { 10.0 }, 1.0])
        .collect();
    let page = study.study(&numbers);
    let beside = page
        .sections
        .iter()
        .find(|s| s.title.contains("ns-2"))
        .unwrap();
    assert_eq!(beside.tables[0].rows, [["arrived", "2", "1", "50.0 %"]]);
    assert_eq!(beside.tables[1].rows.len(), 1);
    assert_eq!(beside.tables[1].rows[0][6], "made up");
    assert_eq!(
        beside.tables[2].rows,
        [["made up", "1", "by this test"]],
        "causes without misses are left out"
    );
    assert!(page.facts.iter().any(|f| f.1 == "1 of 2"));
    // The claim shows the reference's number beside ours.
    assert_eq!(
        page.ledgers[0].entries[0].findings[0].reference,
        "0.000000001000"
    );
    for (from, to, expected) in [
        (
            "slow,fifo,1,",
            "slow,fifi,1,",
            "line 2: no line is called `fifi`",
        ),
        (
            "arrived_sd",
            "arived_sd",
            "line 1: `arived_sd` is not a key",
        ),
        ("1e9", "much", "line 3: `much` is not a number"),
        (
            "slow,fifo,0.5",
            "slow,fifo,1",
            "line 3: a row for these runs",
        ),
    ] {
        std::fs::write(dir.path().join("ref.csv"), table.replacen(from, to, 1)).unwrap();
        let error = FileStudy::read(&path, &Overrides::default())
            .expect_err(to)
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_studies_of_the_repository_read() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut found = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path().join("study.toml");
        if !path.is_file() {
            continue;
        }
        // Their quick versions are read where they are compared with those that the program carries.
        if let Err(error) = FileStudy::read(&path, &Overrides::default()) {
            panic!("{error}");
        }
        found += 1;
    }
    assert!(found > 0);
}

/// Each code has a row in the page about warnings.
#[test]
fn doubts_of_bundled_studies_have_known_codes() {
    for bundled in crate::bundled::ALL {
        let study = bundled.study(&Overrides::default());
        let study = study.unwrap_or_else(|e| panic!("{}: {e}", bundled.name));
        for doubt in &study.compiled.file.doubt {
            assert!(Code::ALL.contains(&doubt.code), "{}", doubt.code);
        }
    }
}
