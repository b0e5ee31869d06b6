//! Values that are asked for instead of the study's own.

use super::*;
use crate::bundled::Bundled;

fn of(text: &str, with: &[&str]) -> Result<FileStudy, String> {
    let (_dir, path) = written(text);
    let wish = Wish {
        with: with.iter().map(|&w| w.to_owned()).collect(),
        ..Wish::default()
    };
    FileStudy::read(&path, &wish).map_err(|e| e.to_string())
}

#[test]
fn a_value_of_the_study_is_another_on_request() {
    let text = STUDY.replace("base = 1", "base = 1, way = \"up\", fast = true");
    let rates = |study: &FileStudy| -> Vec<String> {
        let each = study.groups().map(|g| g.assignments[1].clone());
        each.collect()
    };
    let own = of(&text, &["base=1", "fast=true"]).unwrap();
    let other = of(&text, &["base=0.5", "way=a b"]).unwrap();
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
        all.into_iter().find(|d| d.code == "changed-study")
    };
    // What stands there already is no change.
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
    // Rows of the one do not serve the other.
    let settings = |study: &FileStudy| study.cells_by_name().map(|c| c.1).collect::<Vec<_>>();
    let both = settings(&own).into_iter().zip(settings(&other));
    assert!(both.into_iter().all(|(a, b)| a != b));
}

#[test]
fn values_that_the_study_does_not_have_are_refused() {
    let text = STUDY.replace("base = 1", "base = 1, fast = true");
    for (with, why) in [
        (&["base"][..], "with base: write NAME=VALUE"),
        (&["bass=2"], "no value `bass`: did you mean `base`?"),
        (&["load=2"], "no value `load`"),
        (&["base=many"], "`many` is no number"),
        (&["base=inf"], "`inf` is no number"),
        (&["fast=1"], "`1` is no true or false"),
        (&["base=2", "base=3"], "`base` is set already"),
    ] {
        let error = of(&text, with).expect_err(why);
        assert!(error.contains(why), "{error}");
    }
    let none = of(&STUDY.replace("with = { base = 1 }\n", ""), &["base=2"]);
    assert!(none.unwrap_err().contains("it has none"));
}

/// The paper's traces were of half an hour. Those that ns-2 was given are of ten minutes.
#[test]
fn the_filler_studys_stand_ins_may_be_of_half_an_hour() {
    let bundled = Bundled::named("filler").expect("it is carried");
    let asked = |with: &[&str]| {
        let wish = Wish {
            with: with.iter().map(|&w| w.to_owned()).collect(),
            ..Wish::default()
        };
        bundled.study(&wish).unwrap_or_else(|e| panic!("{e}"))
    };
    let (own, long) = (asked(&[]), asked(&["minutes=30"]));
    assert!(own.groups().all(|g| g.seconds == 600.0));
    assert!(long.groups().all(|g| g.seconds == 1800.0));
    let named = long.compiled.file.reference.as_ref().expect("ns-2");
    let theirs = long.reference.as_ref().expect("its numbers");
    let of = |study: &FileStudy| {
        super::super::reference::comparable(named, theirs, &study.groups, false)
    };
    assert_eq!(of(&own).numbers.as_ref(), Some(theirs));
    let left_out = of(&long);
    assert_eq!(left_out.numbers, None);
    let why = ": ns-2.35's runs are of 600 s, and ours of 1800 s";
    assert_eq!(left_out.left_out.as_deref(), Some(why));
}
