//! Checks that names are valid and unique.

use swell_experiment::file;

use super::axes;
use super::error::StudyError;
use super::format::StudyFile;
use super::origin::Origin;

/// Maximum number of figures in a study, and of expressions in a figure of points: each is evaluated for every
/// combination.
const FIGURES: usize = 200;
const EXPRESSIONS: usize = 20;

/// Names that are reserved in expressions.
const TAKEN: &[&str] = &[
    "column",
    "line",
    "label",
    "seed",
    "seconds",
    "up",
    "down",
    "requests",
    "flows",
    "measures",
    "records",
    "seeds",
    "value",
    "x",
    "measure",
    "run",
    "runs",
    "reference",
];

/// Whether a name is an identifier of expressions.
fn is_word(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic())
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !TAKEN.contains(&name)
}

/// The hint for a bad identifier.
const WORDS: &str = "write letters, digits and _, a letter first; some words are taken";

/// Checks the names in a study, which identify things in tables and expressions.
pub(super) fn check(study: &StudyFile, origin: &Origin) -> Result<(), StudyError> {
    let plain = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        !name.is_empty() && name.chars().all(allowed) && !name.starts_with('.')
    };
    let fail = |key: String, message: String, hint: &str| -> Result<(), StudyError> {
        Err(origin.problem(&key, &message, Some(hint.into())).into())
    };
    let letters = "write letters, digits and dashes";
    if !plain(&study.name) {
        return fail(
            "name".into(),
            format!("`{}` cannot name a directory", study.name),
            letters,
        );
    }
    if study.measure.is_empty() {
        return fail(
            "measure".into(),
            "a study measures something".into(),
            "write [[measure]]",
        );
    }
    let many = |what: &str, found: usize, most: usize| format!("{found} {what}, at most {most}");
    if study.figure.len() > FIGURES {
        return fail(
            format!("figure[{FIGURES}]"),
            many("figures", study.figure.len(), FIGURES),
            "each is asked of every combination; write a second study of the same runs",
        );
    }
    for (i, figure) in study.figure.iter().enumerate() {
        if figure.points.len() > EXPRESSIONS {
            return fail(
                format!("figure[{i}].points"),
                many("expressions in a figure", figure.points.len(), EXPRESSIONS),
                "write several figures",
            );
        }
    }
    let lists: [(&str, Vec<&str>, bool); 5] = [
        ("axis", study.axis.iter().map(|a| &*a.name).collect(), true),
        ("line", study.line.iter().map(|l| &*l.name).collect(), false),
        (
            "column",
            study.column.iter().map(|c| &*c.name).collect(),
            false,
        ),
        (
            "measure",
            study.measure.iter().map(|m| &*m.name).collect(),
            true,
        ),
        (
            "figure",
            study.figure.iter().map(|f| &*f.name).collect(),
            false,
        ),
    ];
    for (what, list, in_expressions) in &lists {
        for (i, name) in list.iter().enumerate() {
            let key = format!("{what}[{i}].name");
            if list[..i].contains(name) {
                return fail(
                    key,
                    format!("there are two {what}s called `{name}`"),
                    "names tell them apart",
                );
            }
            if *in_expressions && !is_word(name) {
                let message = format!("`{name}` is not a name that expressions can use");
                return fail(key, message, WORDS);
            }
            if !plain(name) {
                return fail(key, format!("`{name}` is not a name"), letters);
            }
        }
    }
    let axes = &lists[0].1;
    for measure in &lists[3].1 {
        if axes.contains(measure) {
            return fail(
                "measure".into(),
                format!("`{measure}` is an axis already"),
                "names tell them apart",
            );
        }
    }
    if let Err(wrong) = axes::check(study) {
        return fail(wrong.key, wrong.why, &wrong.hint);
    }
    let columns = &lists[2].1;
    for (i, line) in study.line.iter().enumerate() {
        for column in line.columns.iter().flatten() {
            if !columns.contains(&&**column) {
                return fail(
                    format!("line[{i}].columns"),
                    format!("no column is called `{column}`"),
                    &file::suggest(column, columns, "columns"),
                );
            }
        }
        for measure in line.measures.iter().flatten() {
            let measures = &lists[3].1;
            if !measures.contains(&&**measure) {
                return fail(
                    format!("line[{i}].measures"),
                    format!("no measure is called `{measure}`"),
                    &file::suggest(measure, measures, "measures"),
                );
            }
        }
    }
    let of_columns = study.column.iter().enumerate();
    let of_lines = study.line.iter().enumerate();
    let sets = [("with".to_owned(), &study.with)]
        .into_iter()
        .chain(of_columns.map(|(i, c)| (format!("column[{i}].with"), &c.with)))
        .chain(of_lines.map(|(i, l)| (format!("line[{i}].with"), &l.with)))
        .chain(
            study
                .capture
                .iter()
                .map(|c| ("capture.with".into(), &c.with)),
        );
    for (place, with) in sets {
        for name in with.keys() {
            let key = format!("{place}.{name}");
            if !is_word(name) {
                let message = format!("`{name}` is not a name that expressions can use");
                return fail(key, message, WORDS);
            }
            for (what, taken) in [("an axis", axes), ("a measure", &lists[3].1)] {
                if taken.contains(&&**name) {
                    let message = format!("`{name}` is {what} already");
                    return fail(key, message, "names tell them apart");
                }
            }
        }
    }
    Ok(())
}
