//! Values changed with `--with`.

use swell_base::Code;

use super::*;
use crate::bundled::Bundled;

fn of(text: &str, with: &[&str]) -> Result<FileStudy, String> {
    let (_dir, path) = written(&optional(text));
    let overrides = Overrides {
        with: with.iter().map(|&w| w.to_owned()).collect(),
        ..Overrides::default()
    };
    FileStudy::read(&path, &overrides).map_err(|e| e.to_string())
}

#[test]
fn a_value_of_the_study_is_another_on_request() {
    let text = STUDY.replace("base = 1", "base = 1, way = \"up\", fast = true");
    let rates = |study: &FileStudy| -> Vec<String> {
        let each = study.groups().map(|g| g.assignments[1].clone());
        each.collect()
    };
    let own = of(&text, &["base=1", "fast=true"]).unwrap();
    let other = of(&text, &[" base = 0.5", "way=a b"]).unwrap();
    assert_eq!(
        rates(&own)[..2],
        [
            "background.noise.rate=0.5Mbit",
            "background.noise.rate=1Mbit"
        ]
    );
    assert_eq!(
        rates(&other)[..2],
        [
            "background.noise.rate=0.25Mbit",
            "background.noise.rate=0.5Mbit"
        ]
    );

    let page = |study: &FileStudy| study.study(&vec![vec![1.0, 1.0]; study.cells().len()]);
    let doubt = |study: &FileStudy| {
        let all = page(study).doubts;
        all.into_iter().find(|d| d.code == Code::ChangedStudy)
    };
    // An assignment of the current value is not a change.
    assert_eq!(doubt(&own), None);
    assert!(!own.command.contains("--with"));
    let said = doubt(&other).expect("it was changed").message;
    assert_eq!(
        said,
        "a study that was changed: base is 0.5, its own is 1; way is a b, its own is up"
    );
    let asked = "study.toml --with base=0.5 --with 'way=a b' --seeds 2";
    assert!(other.command.ends_with(asked), "{}", other.command);
    let facts = page(&other).facts;
    assert!(facts.contains(&("base, changed".to_owned(), "0.5".to_owned())));
    // Rows of one study are not reused for the other.
    let settings = |study: &FileStudy| study.cells_by_name().map(|c| c.1).collect::<Vec<_>>();
    let both = settings(&own).into_iter().zip(settings(&other));
    assert!(both.into_iter().all(|(a, b)| a != b));
}

#[test]
fn values_that_the_study_does_not_have_are_refused() {
    let text = STUDY.replace("base = 1", "base = 1, fast = true");
    for (with, why) in [
        (&["base"][..], "--with base: write NAME=VALUE"),
        (
            &["bass=2"],
            "no option `bass`: it has base: how base, 0.5 to 8; fast: how fast",
        ),
        (&["load=2"], "no option `load`"),
        (&["base=0"], "--with base=0: base is 0.5 to 8"),
        (&["base=1e300"], "--with base=1e300: base is 0.5 to 8"),
        // An assignment of the current value also counts as an assignment.
        (&["base=1", " base = 2"], "`base` is set already"),
        (&["base=many"], "`many` is not a number"),
        (&["base=inf"], "`inf` is not a number"),
        (&["fast=1"], "`1` is not true or false"),
        (&["base=2", "base=3"], "`base` is set already"),
    ] {
        let error = of(&text, with).expect_err(why);
        assert!(error.contains(why), "{error}");
    }
    let none = of(&STUDY.replace("with = { base = 1 }\n", ""), &["base=2"]);
    assert!(none.unwrap_err().contains("it has none"));
}

/// A study in which every value that a test changes is an option.
fn optional(text: &str) -> String {
    let names = [("base", "from = 0.5\nto = 8\n"), ("way", ""), ("fast", "")];
    let there = names
        .iter()
        .filter(|(name, _)| text.contains(&format!("{name} = ")));
    let options = there.map(|(name, more)| {
        format!("[[option]]\nname = \"{name}\"\nwhat = \"how {name}\"\n{more}")
    });
    format!("{text}\n{}", options.collect::<String>())
}

#[test]
fn options_are_of_values_that_are_there() {
    for (option, key, why) in [
        ("name = \"bass\"", "option[0].name", "no value `bass`"),
        (
            "name = \"base\"\nfrom = 2",
            "option[0].from",
            "`base` is 1 in the study",
        ),
        (
            "name = \"base\"\nto = 0.5",
            "option[0].to",
            "`base` is 1 in the study",
        ),
        (
            "name = \"fast\"\nto = 0.5",
            "option[0].to",
            "`fast` is not a number",
        ),
    ] {
        let text = STUDY.replace("base = 1", "base = 1, fast = true");
        let error = read(&format!("{text}\n[[option]]\nwhat = \"w\"\n{option}\n"));
        let error = error.expect_err(why);
        assert!(error.contains(why) && error.contains(key), "{error}");
    }
}

/// The paper's traces lasted half an hour. Those given to ns-2 last ten minutes.
#[test]
fn the_filler_studys_stand_ins_may_be_of_half_an_hour() {
    let bundled = Bundled::named("filler").expect("it is carried");
    let asked = |with: &[&str]| {
        let overrides = Overrides {
            with: with.iter().map(|&w| w.to_owned()).collect(),
            ..Overrides::default()
        };
        bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"))
    };
    let (own, long) = (asked(&[]), asked(&["minutes=30"]));
    assert!(own.groups().all(|g| g.seconds == 600.0));
    assert!(long.groups().all(|g| g.seconds == 1800.0));
    let named = long.compiled.file.reference.as_ref().expect("ns-2");
    let theirs = long.reference.as_ref().expect("its numbers");
    assert_eq!(own.comparable(named, theirs).numbers.as_ref(), Some(theirs));
    let left_out = long.comparable(named, theirs);
    assert_eq!(left_out.numbers, None);
    let why = ": values were changed";
    assert_eq!(left_out.left_out.as_deref(), Some(why));
}

/// A quick run has its own values, and `--with` overrides them.
#[test]
fn what_is_asked_for_is_so_in_a_first_look_too() {
    let bundled = Bundled::named("filler").expect("it is carried");
    for (with, seconds, changed) in [
        (None, 60.0, None),
        (Some("minutes=1"), 60.0, None),
        (
            Some("minutes=30"),
            1800.0,
            Some("minutes is 30, its own is 1"),
        ),
        (
            Some("minutes=10"),
            600.0,
            Some("minutes is 10, its own is 1"),
        ),
    ] {
        let overrides = Overrides {
            quick: true,
            with: with.into_iter().map(str::to_owned).collect(),
            ..Overrides::default()
        };
        let study = bundled.study(&overrides).unwrap_or_else(|e| panic!("{e}"));
        assert!(study.groups().all(|g| g.seconds == seconds), "{with:?}");
        let doubts = study.doubts();
        let of = |code: Code| doubts.iter().find(|d| d.code == code);
        let said = of(Code::ChangedStudy).map(|d| d.message.as_str());
        assert_eq!(
            said.map(|s| s.trim_start_matches("a study that was changed: ")),
            changed
        );
        let first = &of(Code::QuickStudy).expect("a first look").message;
        let but = changed.and_then(|c| c.split(',').next());
        let but = but.map_or_else(String::new, |c| format!(", but {c}"));
        assert!(first.contains(&format!("instead of ten{but};")), "{first}");
    }
}

#[test]
fn a_first_look_changes_values_that_are_there() {
    for (with, why) in [
        ("bass = 2", "no value `bass`"),
        ("base = true", "`base` is a number"),
    ] {
        let error = read(&format!("{STUDY}\n[quick]\nwith = {{ {with} }}\n"));
        let error = error.expect_err(why);
        assert!(
            error.contains(why) && error.contains("key quick.with."),
            "{error}"
        );
    }
}

/// A changed study is another experiment: it is not compared with a reference, whatever its length.
#[test]
fn a_changed_study_has_no_reference() {
    let text = format!(
        "{STUDY}\n[[claim]]\nid = \"A1\"\nclaim = \"theirs\"\nvalue = \"runs().len()\"\nholds = \"true\"\nanchor = true\n\
         [reference]\nfile = \"ref.csv\"\nname = \"ns-2\"\nduration = \"6s\"\n\
         [[reference.cause]]\nwhere = \"true\"\nname = \"ties\"\nwhat = \"Ties.\"\n"
    );
    let (dir, path) = written(&optional(&text));
    // Numbers far from all of ours.
    let table = "column,line,load,seeds,arrived,arrived_sd\n\
                 slow,fifo,0.5,3,90,0.1\nslow,fifo,1,3,90,0.1\nslow,codel,1,3,90,0.1\n";
    std::fs::write(dir.path().join("ref.csv"), table).unwrap();
    let page = |with: &[&str]| {
        let overrides = Overrides {
            with: with.iter().map(|&w| w.to_owned()).collect(),
            ..Overrides::default()
        };
        let read = FileStudy::read(&path, &overrides).unwrap_or_else(|e| panic!("{e}"));
        read.study(&vec![vec![10.0, 1.0]; read.cells().len()])
    };
    let said = |made: &crate::Study| {
        let fact = made.facts.iter().find(|f| f.0.contains("ns-2"));
        let findings: Vec<_> = made.ledgers[0]
            .entries
            .iter()
            .map(|e| &e.findings[0])
            .collect();
        (
            fact.expect("a fact").1.clone(),
            made.sections.iter().any(|s| s.title.starts_with("Beside")),
            findings[0].reference.is_empty(),
            findings[1].verdict,
        )
    };
    let own = page(&["base=1"]);
    assert_eq!(
        said(&own),
        ("0 of 3".to_owned(), true, false, crate::Verdict::Holds)
    );
    let other = page(&["base=2"]);
    let expected = (
        "not compared: values were changed".to_owned(),
        false,
        true,
        crate::Verdict::NotTested,
    );
    assert_eq!(said(&other), expected);
    let doubt = other.doubts.iter().find(|d| d.code == Code::ChangedStudy);
    assert_eq!(
        doubt.expect("it was").severity,
        swell_base::Severity::Warning
    );
    assert!(
        !other
            .doubts
            .iter()
            .any(|d| d.code.as_str().contains("reference"))
    );
}
