//! Lines that have only some of the measures.

use super::*;
use crate::Section;
use crate::bundled::Bundled;
use swell_base::Code;
use swell_experiment::run::grid::Task as _;

/// The study with the line `codel` restricted to these measures.
fn only(measures: &str) -> String {
    let line = "name = \"codel\"\n";
    assert!(STUDY.contains(line));
    STUDY.replacen(line, &format!("{line}measures = {measures}\n"), 1)
}

/// The table of every number: its head, and its rows.
fn every_number(sections: &[Section]) -> (&[String], &[Vec<String>]) {
    let section = sections.iter().find(|s| s.title == "Every number");
    let table = &section.expect("the page ends with it").tables[0];
    (&table.head, &table.rows)
}

#[test]
fn a_measure_that_means_nothing_of_a_line_has_no_number() {
    for (measures, expected) in [
        ("[\"arrived\"]", [true, false]),
        // A measure computed from one that the line lacks.
        ("[\"each\"]", [false, false]),
        ("[\"arrived\", \"each\"]", [true, true]),
    ] {
        // The figure shows the other line.
        let of_one = "y = \"arrived\"\nlines = [\"fifo\"]";
        let text = only(measures).replacen("y = \"arrived\"", of_one, 1);
        let (_dir, path) = written(&text);
        let study = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            file: path.with_file_name("runs.csv"),
            jobs: 1,
            fresh: false,
            shard: None,
        };
        let GridOutcome::Complete(numbers) = study.run(&options, &|_| {}, &|| false).unwrap()
        else {
            panic!("nobody stopped it");
        };
        let made = study.study(&numbers);
        let (head, rows) = every_number(&made.sections);
        assert_eq!(head[3..], ["arrived", "each"]);
        let kept = std::fs::read_to_string(&options.file).unwrap();
        for (name, of_page) in [("fifo", [true; 2]), ("codel", expected)] {
            for row in rows.iter().filter(|r| r[1] == name) {
                let there = [3, 4].map(|i| !row[i].is_empty());
                assert_eq!(there, of_page, "{measures}: {row:?}");
            }
            for row in kept.lines().filter(|l| l.contains(name)) {
                let fields: Vec<&str> = row.split(',').collect();
                let there = [5, 6].map(|i| !fields[i].is_empty());
                assert_eq!(there, of_page, "{measures}: {row}");
            }
        }
        assert!(made.doubts.iter().all(|d| d.code == Code::FewSeeds));
    }
}

/// A mean of one seed of three is not a mean over seeds.
#[test]
fn seeds_without_a_number_are_told() {
    let overrides = Overrides {
        seeds: Some(3),
        ..Overrides::default()
    };
    let (_dir, path) = written(STUDY);
    let study = FileStudy::read(&path, &overrides).unwrap_or_else(|e| panic!("{e}"));
    let full = vec![vec![10.0, 10.0]; study.cells().len()];
    let told = |numbers: &[Vec<f64>]| {
        let made = study.study(numbers);
        let doubt = made
            .doubts
            .iter()
            .find(|d| d.code == Code::SeedsWithoutNumber);
        let tentative = made.ledgers[0].entries[0].findings[0].tentative;
        let shown = every_number(&made.sections).1[0][3].clone();
        (doubt.map(|d| d.message.clone()), tentative, shown)
    };
    assert_eq!(told(&full), (None, false, "10".into()));
    let mut less = full.clone();
    for row in &mut less[..2] {
        row[0] = f64::NAN;
    }
    let (doubt, _, shown) = told(&less);
    let doubt = doubt.expect("two seeds of three have no number");
    assert!(doubt.contains("only 1 of 3 seeds have a number"), "{doubt}");
    assert_eq!(shown, "10 (of 1)");
}

/// Warnings of runs stand on the page, also of runs that were finished before.
#[test]
fn warnings_of_runs_reach_the_page() {
    let (_dir, path) = written(STUDY);
    let options = Options {
        file: path.with_file_name("runs.csv"),
        jobs: 1,
        fresh: false,
        shard: None,
    };
    let read = || FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let study = read();
    let GridOutcome::Complete(numbers) = study.run(&options, &|_| {}, &|| false).unwrap() else {
        panic!("nobody stopped it");
    };
    let name = swell_experiment::run::grid::name(&study.cells()[0]);
    let missed = swell_base::Warning::warning(Code::RateMissed, "18 Mbit/s asked, 12 carried");
    study.warnings.keep(&name, "rate", missed).unwrap();
    let again = read();
    again.run(&options, &|_| {}, &|| false).unwrap();
    for either in [study, again] {
        let doubts = either.study(&numbers).doubts;
        let found = doubts.iter().find(|d| d.code == Code::RateMissed);
        let text = &found.expect("a run had it").message;
        assert!(
            text.starts_with("18 Mbit/s asked, 12 carried (1 of "),
            "{text}"
        );
    }
}

/// If a line later restricts its measures, only its own runs are repeated.
#[test]
fn only_rows_of_the_line_are_run_anew() {
    let names = |text: &str| {
        let study = read(text).unwrap();
        let cells = study.cells().into_iter();
        let each = cells.map(|c| (c.key()[1].clone(), c.settings()));
        each.collect::<Vec<_>>()
    };
    for (old, new) in names(STUDY).iter().zip(names(&only("[\"arrived\"]"))) {
        assert_eq!(*old == new, new.0 != "codel", "{new:?}");
    }
}

#[test]
fn nothing_asks_for_it_and_nothing_is_held_against_it() {
    let text = only("[\"arrived\"]");
    let claim = text.replacen(
        "'run(\"fifo\", #{load: 1}).arrived / ",
        "'run(\"codel\").each / ",
        1,
    );
    let figure = text.replacen("y = \"arrived\"", "y = \"each\"", 1);
    let unknown = only("[\"arived\"]");
    for (mistaken, expected) in [
        (claim, ["nothing here is called `each`", "claim[0].value"]),
        (
            figure,
            ["the line `codel` has no such measure", "figure[0].y"],
        ),
        (
            unknown,
            ["no measure is called `arived`", "line[1].measures"],
        ),
    ] {
        let why = read(&mistaken).expect_err(expected[0]);
        assert!(expected.iter().all(|e| why.contains(e)), "{why}");
    }
    let bar = "value = \"arrived / load\"\n";
    let barred = text.replacen(bar, &format!("{bar}bar = {{ relative = 0.5 }}\n"), 1);
    let (dir, path) = written(&format!(
        "{barred}\n[reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\n"
    ));
    let table = "column,line,load,arrived,each\nslow,fifo,1,10,10\nslow,codel,1,10,";
    std::fs::write(dir.path().join("ref.csv"), format!("{table}\n")).unwrap();
    let study = FileStudy::read(&path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let made = study.study(&vec![vec![10.0, 10.0]; study.cells().len()]);
    let compared = made.facts.iter().find(|f| f.0.contains("ns-2"));
    assert_eq!(compared.expect("it is compared").1, "3 of 3");
    std::fs::write(dir.path().join("ref.csv"), format!("{table}10\n")).unwrap();
    let why = FileStudy::read(&path, &Overrides::default()).expect_err("it means nothing");
    let expected = "line 3: `each` means nothing of the line `codel`";
    assert!(why.to_string().contains(expected), "{why}");
}

/// Where other connections' ACKs arrive among the packets, the c.o.v. is not the clients' own; packet counts are.
#[test]
fn of_packets_both_ways_the_page_says_what_is_the_clients_own() {
    let overrides = Overrides {
        quick: true,
        ..Overrides::default()
    };
    let bundled = Bundled::named("burstiness").expect("it is carried");
    let study = bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"));
    let made = study.study(&vec![
        vec![1.5; study.measures().count()];
        study.cells().len()
    ]);
    let (head, rows) = every_number(&made.sections);
    let own = [
        "delivered",
        "loss",
        "arrived",
        "dropped",
        "throughput of each client",
        "seconds simulated",
        "acknowledgements compressed",
    ];
    let mut both = 0;
    for row in rows {
        let two_way = row[1].ends_with("-two-way");
        both += usize::from(two_way);
        for (name, cell) in head.iter().zip(row).skip(3) {
            let there = !two_way || own.contains(&name.as_str());
            assert_eq!(!cell.is_empty(), there, "{}: {name} {cell}", row[1]);
        }
    }
    assert!(own.iter().all(|name| head.iter().any(|h| h == name)));
    // Three transports in three columns at three numbers of clients.
    assert_eq!(both, 27);
}
