//! Heat maps.

use super::*;
use crate::{Answer, Heatmap};

const MAP: &str = r#"
[[figure]]
name = "map"
title = "Map"
x = "load"
x_title = "load"
y = "base"
y_title = "base"
[figure.heatmap]
across = "2"
across_title = "two"
value = "arrived / run(`fifo`, #{load: 1}).arrived"
value_title = "more"
answer = "if load < 1 { `does not matter` } else { `matters` }"
frame = "line == `codel`"
frame_label = "not fifo"
"#;

/// The heat maps of the small study with this figure, with 100 packets in its first run and one more in each other.
fn maps(figure: &str) -> Result<Vec<Heatmap>, String> {
    let read = read(&format!("{STUDY}{figure}"))?;
    let runs = read.groups().count() * usize::from(read.seeds());
    let numbers: Vec<Vec<f64>> = (0..runs).map(|i| vec![100.0 + i as f64, 1.0]).collect();
    let made = read.study(&numbers);
    let failed = |w: &swell_base::Warning| w.code == Code::FigureFailed;
    assert!(!made.doubts.iter().any(failed), "{:?}", made.doubts);
    let pictures = made.sections.iter().flat_map(|s| &s.pictures);
    Ok(pictures.filter_map(|p| p.heatmap.clone()).collect())
}

#[test]
fn a_cell_is_a_run_at_its_place() {
    let maps = maps(MAP).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(maps.len(), 2, "one for each column");
    let panels: Vec<(&str, f64, usize)> = maps[0]
        .panels
        .iter()
        .map(|p| (&*p.row, p.across, p.cells.len()))
        .collect();
    assert_eq!(panels, [("fifo", 2.0, 2), ("codel", 2.0, 1)]);
    let cells: Vec<_> = maps[0].panels.iter().flat_map(|p| &p.cells).collect();
    // Means of two seeds: 100.5, 102.5 and 104.5 packets.
    for (cell, (x, ratio, answer, framed)) in cells.iter().zip([
        (0.5, 100.5 / 102.5, Answer::DoesNotMatter, false),
        (1.0, 1.0, Answer::Matters, false),
        (1.0, 104.5 / 102.5, Answer::Matters, true),
    ]) {
        assert_eq!((cell.x, cell.y, cell.framed), (x, 1.0, framed));
        assert!((cell.value.value - ratio).abs() < 1e-12 && cell.value.interval.is_some());
        assert_eq!(cell.answer, Some(answer));
    }
}

#[test]
fn runs_that_a_map_lacks_are_empty_cells_and_no_answer() {
    let lacking = MAP.replace(
        "line == `codel`",
        "run(`fifo`, #{load: 7}).arrived.mean > 0.0",
    );
    let lacking = lacking.replace("if load < 1", "if run(`fifo`, #{load: 7}).load < 1");
    let cells = |maps: &[Heatmap]| -> Vec<(Option<Answer>, bool)> {
        let panels = maps.iter().flat_map(|m| &m.panels);
        panels
            .flat_map(|p| &p.cells)
            .map(|c| (c.answer, c.framed))
            .collect()
    };
    let found = maps(&lacking).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(cells(&found), [(Some(Answer::CannotTell), false); 6]);
    let none = MAP.replace("#{load: 1}", "#{load: 7}");
    assert_eq!(maps(&none).unwrap_or_else(|e| panic!("{e}")), []);
}

#[test]
fn what_a_map_cannot_show_is_refused() {
    for (from, to, expected) in [
        ("x = \"load\"", "", "the cells of a heat map have places"),
        ("y = \"base\"", "", "the cells of a heat map have places"),
        (
            "y_title",
            "reference = '1'\ny_title",
            "a heat map has no such key",
        ),
        (
            "y_title",
            "by = 'column'\ny_title",
            "panels of a heat map are lines",
        ),
        ("frame_label = \"not fifo\"\n", "", "belong together"),
        (
            "`matters`",
            "`maybe`",
            "an answer is one of `matters`, `does not matter`, `cannot tell`, not `maybe`",
        ),
        (
            "x = \"load\"",
            "x = \"1\"",
            "several runs of `fifo` are at x 1, y 1 of one panel",
        ),
        ("arrived /", "arived /", "key figure[1].heatmap.value"),
        (
            "across = \"2\"",
            "across = \"`two`\"",
            "key figure[1].heatmap.across",
        ),
    ] {
        assert!(MAP.contains(from), "{from}");
        let why = maps(&MAP.replacen(from, to, 1)).expect_err(to);
        assert!(why.contains(expected), "{why}");
    }
}
