//! Numbers of combinations over their seeds, and the view that claims and figures have of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, ImmutableString, Map};
use swell_base::{Code, Warning};

use super::compiled::{self, Compiled, scope};
use super::format::{Line, StudyFile};
use super::group::Group;
use super::reference::{Numbers, Row};
use super::script::{self, Seeds};
use crate::Estimate;

impl Numbers {
    /// Our numbers: `numbers` has a row for each seed of each group.
    pub(super) fn ours(
        compiled: &Compiled,
        groups: &[Arc<Group>],
        seeds: usize,
        numbers: &[Vec<f64>],
    ) -> Numbers {
        let measures = compiled.file.measure.len();
        let rows = groups.iter().zip(numbers.chunks(seeds.max(1)));
        let rows = rows.map(|(group, runs)| {
            let of = |m: usize| Estimate::of(runs.iter().filter_map(|r| r.get(m).copied()));
            let means = (0..measures).map(of).collect();
            row(compiled, group, means, |m| {
                let each = runs.iter().map(|r| r.get(m).copied());
                each.map(|x| x.unwrap_or(f64::NAN)).collect()
            })
        });
        Numbers {
            rows: rows.collect(),
        }
    }

    /// Measures that some seeds lack, for example percentiles that too few requests reached. Means are of the other
    /// seeds.
    pub(super) fn lacking(&self, study: &StudyFile) -> Option<Warning> {
        let each = self.rows.iter().flat_map(|row| {
            let numbers = row.numbers.iter().zip(&study.measure);
            numbers.filter_map(move |(number, measure)| {
                let all = row.seeds.0.get(&measure.name)?.len();
                let n = number.as_ref().filter(|e| e.n < all)?.n;
                Some((n, all, &measure.name, row))
            })
        });
        let each: Vec<_> = each.collect();
        let (n, all, measure, row) = each.iter().min_by_key(|(n, ..)| *n)?;
        let at: Vec<String> = (study.axis.iter().zip(&row.axes))
            .map(|(axis, x)| format!(", {} {x}", axis.name))
            .collect();
        let more = match each.len() - 1 {
            0 => String::new(),
            1 => "; one more mean lacks seeds".to_owned(),
            k => format!("; {k} more means lack seeds"),
        };
        let text = format!(
            "{measure} of {}, {}{}: only {n} of {all} seeds have a number, and its mean is of these{more}",
            row.column,
            row.line,
            at.concat(),
        );
        Some(Warning::warning(Code::SeedsWithoutNumber, text))
    }

    /// Made-up numbers of the right shape, for the rehearsal.
    pub(super) fn made_up(compiled: &Compiled, groups: &[Arc<Group>]) -> Numbers {
        let measures = compiled.file.measure.len();
        let rows = groups.iter().enumerate().map(|(i, group)| {
            let near = |m: usize| Some(Estimate::known(1.0 + (i + m) as f64 / 1024.0, 0.1, 3));
            let means = (0..measures).map(near).collect();
            row(compiled, group, means, |_| vec![1.0, 1.0625, 1.125])
        });
        Numbers {
            rows: rows.collect(),
        }
    }

    /// The view of one column for claims: a map for each of its combinations.
    fn view(&self, compiled: &Compiled, column: usize) -> View {
        let study = &compiled.file;
        let mine = self.rows.iter().filter(|r| r.place.0 == column);
        let runs = mine
            .map(|row| (row.place.1, known(compiled, row)))
            .collect();
        let line = |l: &Line| l.name.clone();
        View {
            column: study.column[column].name.clone(),
            lines: study.line.iter().map(line).collect(),
            runs,
        }
    }
}

fn row(
    compiled: &Compiled,
    group: &Group,
    mut numbers: Vec<Option<Estimate>>,
    each: impl Fn(usize) -> Vec<f64>,
) -> Row {
    let study = &compiled.file;
    for (number, measure) in numbers.iter_mut().zip(&study.measure) {
        if !study.line[group.line].has(&measure.name) {
            *number = None;
        }
    }
    let seeds = study.measure.iter().enumerate();
    let seeds = seeds.map(|(m, measure)| (measure.name.clone(), each(m)));
    Row {
        place: (group.column, group.line),
        column: study.column[group.column].name.clone(),
        line: study.line[group.line].name.clone(),
        axes: group.axes.clone(),
        numbers,
        seeds: Seeds(Arc::new(seeds.collect())),
    }
}

/// The views of all columns. Every engine that asks for runs shares them.
pub(super) struct Views {
    /// In the order of the file.
    columns: Vec<Arc<View>>,
    named: Arc<BTreeMap<String, Arc<View>>>,
}

impl Views {
    pub(super) fn of(compiled: &Compiled, numbers: &Numbers) -> Views {
        let names = compiled.file.column.iter().map(|c| c.name.clone());
        let columns = (0..names.len()).map(|c| Arc::new(numbers.view(compiled, c)));
        let columns: Vec<_> = columns.collect();
        Views {
            named: Arc::new(names.zip(columns.iter().cloned()).collect()),
            columns,
        }
    }

    pub(super) fn column(&self, column: usize) -> Arc<View> {
        Arc::clone(&self.columns[column])
    }

    pub(super) fn has_runs(&self, column: usize) -> bool {
        !self.columns[column].runs.is_empty()
    }

    /// Registers the runs of a column with the engine, and those of all columns by name.
    pub(super) fn register(&self, column: usize, engine: &mut Engine) {
        View::register(&self.columns[column], engine);
        View::register_all(&self.named, engine);
    }
}

/// All variables of a row: values, axes, names, measures. A measure without a number is absent.
pub(super) fn known(compiled: &Compiled, row: &Row) -> Map {
    let study = &compiled.file;
    let mut map = compiled::entries(scope(study, row.place, &row.axes));
    map.insert("seeds".into(), Dynamic::from(row.seeds.clone()));
    for (measure, number) in study.measure.iter().zip(&row.numbers) {
        if let Some(number) = number {
            map.insert(measure.name.as_str().into(), Dynamic::from(*number));
        }
    }
    map
}

/// The combinations of a column.
#[derive(Clone, Debug)]
pub(super) struct View {
    column: String,
    lines: Vec<String>,
    /// Runs with the index of their line.
    runs: Vec<(usize, Map)>,
}

/// Whether two numbers, texts or booleans are equal; nothing else is.
fn equal(a: &Dynamic, b: &Dynamic) -> bool {
    match (script::number(a), script::number(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => {
            let text = |d: &Dynamic| d.clone().into_immutable_string().ok();
            let texts = text(a).zip(text(b)).is_some_and(|both| both.0 == both.1);
            let truths = a.as_bool().ok().zip(b.as_bool().ok());
            texts || truths.is_some_and(|both| both.0 == both.1)
        }
        _ => false,
    }
}

type Answer<T> = std::result::Result<T, Box<rhai::EvalAltResult>>;

impl View {
    fn of(&self, name: &str) -> Answer<Array> {
        let Some(line) = self.lines.iter().position(|l| l == name) else {
            return script::wrong(format!("no line is called `{name}`"));
        };
        let mine = self.runs.iter().filter(|(l, _)| *l == line);
        Ok(mine.map(|(_, run)| run.clone().into()).collect())
    }

    /// The single run of a line with these values.
    fn one(&self, name: &str, at: &Map) -> Answer<Map> {
        let fits = |run: &Map| {
            at.iter()
                .all(|(key, value)| run.get(key).is_some_and(|found| equal(found, value)))
        };
        let all = self.of(name)?;
        let mut fitting = all
            .into_iter()
            .filter_map(|run| run.try_cast::<Map>())
            .filter(|run| fits(run));
        match (fitting.next(), fitting.next()) {
            (Some(run), None) => Ok(run),
            (None, _) => script::not_there(self.missing(name, at)),
            _ => script::wrong(format!("several runs of `{name}` are there: say which")),
        }
    }

    /// Says which run is missing, or that all of the column are.
    fn missing(&self, name: &str, at: &Map) -> String {
        let column = &self.column;
        if self.runs.is_empty() {
            return format!("column {column} is not run here, and it needs `{name}` there");
        }
        let at = at.iter().map(|(key, value)| format!(", {key} {value}"));
        format!(
            "no run of `{name}`{} is there in column {column}",
            at.collect::<String>()
        )
    }

    /// Registers the functions for the runs of all columns: `run_in(column, line)`, `run_in(column, line, #{...})`,
    /// `runs_in(column, line)`.
    fn register_all(all: &Arc<BTreeMap<String, Arc<View>>>, engine: &mut Engine) {
        let view = |views: &BTreeMap<String, Arc<View>>, column: &str| match views.get(column) {
            Some(view) => Ok(Arc::clone(view)),
            None => script::wrong(format!("no column is called `{column}`")),
        };
        let [of, only, one] = std::array::from_fn(|_| Arc::clone(all));
        engine.register_fn(
            "runs_in",
            move |column: ImmutableString, line: ImmutableString| view(&of, &column)?.of(&line),
        );
        engine.register_fn(
            "run_in",
            move |column: ImmutableString, line: ImmutableString| {
                view(&only, &column)?.one(&line, &Map::new())
            },
        );
        engine.register_fn(
            "run_in",
            move |column: ImmutableString, line: ImmutableString, at: Map| {
                view(&one, &column)?.one(&line, &at)
            },
        );
    }

    /// Registers the functions for runs: `runs()`, `runs(line)`, `run(line)`, `run(line, #{...})`.
    fn register(all: &Arc<View>, engine: &mut Engine) {
        let [every, of, only, one] = std::array::from_fn(|_| Arc::clone(all));
        engine.register_fn("runs", move || -> Array {
            every
                .runs
                .iter()
                .map(|(_, run)| run.clone().into())
                .collect()
        });
        engine.register_fn("runs", move |line: ImmutableString| of.of(&line));
        engine.register_fn("run", move |line: ImmutableString| {
            only.one(&line, &Map::new())
        });
        engine.register_fn("run", move |line: ImmutableString, at: Map| {
            one.one(&line, &at)
        });
    }
}

/// The reference's numbers: `None` if they are not compared, an error if the study has no reference.
pub(super) type Theirs = std::result::Result<Option<Arc<View>>, &'static str>;

/// Registers the functions for the reference's numbers: `reference(line)`, `reference(line, #{...})`, like `run`.
pub(super) fn register_reference(theirs: Theirs, engine: &mut Engine) {
    fn one(theirs: &Theirs, line: &str, at: &Map) -> Answer<Map> {
        match theirs {
            Ok(Some(view)) => view.one(line, at),
            Ok(None) => script::not_there("the reference is not compared"),
            Err(why) => script::wrong(*why),
        }
    }
    let all = Arc::new(theirs);
    let only = Arc::clone(&all);
    engine.register_fn("reference", move |line: ImmutableString| {
        one(&only, &line, &Map::new())
    });
    engine.register_fn("reference", move |line: ImmutableString, at: Map| {
        one(&all, &line, &at)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_found_by_texts_and_booleans_as_they_are() {
        let values = [
            1.5.into(),
            Dynamic::from(2_i64),
            "ns2".into(),
            "other".into(),
            true.into(),
            false.into(),
        ];
        for (i, a) in values.iter().enumerate() {
            for (k, b) in values.iter().enumerate() {
                assert_eq!(equal(a, b), i == k, "{a} {b}");
            }
        }
        assert!(equal(&2.0.into(), &Dynamic::from(2_i64)));
        assert!(!equal(&Dynamic::UNIT, &Dynamic::UNIT));
    }
}
