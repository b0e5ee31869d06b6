//! Figures of bars, and the labels of lines.

use super::*;

const BARS: &str = r#"
[[figure]]
name = "both"
title = "Both"
lines = ["fifo", "codel"]
labels = ["first", "second"]
bars = ["less", "more"]
at = [0, 1]
x_title = "which"
y = "x + 1.0"
y_title = "number"
"#;

fn read(figure: &str) -> Result<FileStudy, String> {
    let (_dir, path) = written(&(STUDY.to_owned() + figure));
    FileStudy::read(&path, &Overrides::default()).map_err(|e| e.to_string())
}

#[test]
fn bars_stand_in_named_groups_one_for_each_line() {
    let read = read(BARS).unwrap_or_else(|e| panic!("{e}"));
    let numbers = vec![vec![1.0; read.measures().count()]; read.groups().count()];
    let made = read.study(&numbers);
    let mut all = made.sections.iter().flat_map(|s| &s.pictures);
    let picture = all.find(|p| p.name.starts_with("both")).expect("a picture");
    assert_eq!(picture.bars, ["less", "more"]);
    let names: Vec<&str> = picture.lines.iter().map(|l| &*l.name).collect();
    assert_eq!(names, ["first", "second"]);
    for line in &picture.lines {
        assert!(
            line.points.iter().all(|(x, y)| y.value == x + 1.0),
            "{line:?}"
        );
    }
}

#[test]
fn mistakes_in_bars_have_their_place() {
    for (from, to, said) in [
        ("at = [0, 1]", "at = [0, 2]", "2 is none of the groups"),
        ("at = [0, 1]", "at = [0.5]", "0.5 is none of the groups"),
        (
            "at = [0, 1]",
            "at = [0, 1]\ny_log = true",
            "leave out y_log",
        ),
        (
            "at = [0, 1]",
            "at = [0, 1]\ncurve = \"x\"\ncurve_label = \"c\"",
            "leave out curve",
        ),
        ("\"first\", ", "", "as many labels as lines"),
    ] {
        let found = read(&BARS.replace(from, to)).err();
        let found = found.unwrap_or_else(|| panic!("{to} is a mistake"));
        assert!(found.contains(said), "{to}: {found}");
    }
}
