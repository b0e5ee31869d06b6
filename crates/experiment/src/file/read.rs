//! Parses and checks a [`File`].

use std::ops::Range;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names::suggest;
use super::shape::{Finding, Shape};
use super::{File, Problem, Problems, check};

/// The JSON schema (draft 2020-12) of the experiment file.
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schema_of::<File>("Groundswell experiment"))
}

/// The JSON schema (draft 2020-12) of a file with the type `T`.
pub fn schema_of<T: JsonSchema>(title: &str) -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    tidy(&mut schema);
    schema["title"] = title.into();
    schema
}

/// Joins the lines of descriptions, and adds a description to the key `kind`.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            if let Some(kind) = map.get_mut("properties").and_then(|p| p.get_mut("kind")) {
                kind["description"] = "Which kind; it decides what other keys there are.".into();
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Reads an experiment file. `name` is its name in messages.
///
/// # Errors
/// All problems found in one pass: syntax errors; else all unknown or missing keys,
/// wrong types, unknown names and bad units; else all impossible values.
pub fn read(text: &str, name: &str) -> Result<File, Problems> {
    let file: File = read_as(text, name, schema())?;
    let impossible = check::check(&file);
    // Parsed only once, and only where something is wrong.
    let table = match impossible.is_empty() {
        true => None,
        false => DeTable::parse(text).ok(),
    };
    let impossible: Vec<Problem> = impossible
        .into_iter()
        .map(|doubt| placed(text, table.as_ref(), &doubt.key, doubt.message, doubt.hint))
        .collect();
    match impossible.is_empty() {
        true => Ok(file),
        false => Err(Problems::of(name, impossible)),
    }
}

/// Reads a file that conforms to `schema`, such as one from [`schema_of`].
///
/// # Errors
/// Syntax errors; else all unknown or missing keys, wrong types, unknown names and bad units.
pub fn read_as<T: DeserializeOwned>(text: &str, name: &str, schema: &Value) -> Result<T, Problems> {
    let fail = |findings: Vec<Finding>| {
        let problems = findings
            .into_iter()
            .map(|f| Problem::at(text, f.span, f.key, f.message, f.hint));
        Problems::of(name, problems.collect())
    };
    let (table, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        return Err(fail(syntax.iter().map(|e| plain(e, text)).collect()));
    }
    let findings = Shape::check(schema, table.get_ref(), table.span());
    if !findings.is_empty() {
        return Err(fail(findings));
    }
    toml::from_str(text).map_err(|e| fail(vec![plain(&e, text)]))
}

/// A problem with the value of a dotted `key` in a file that [`read_as`] accepts. For problems that are found later,
/// such as a missing model file.
pub fn problem(text: &str, key: &str, message: String, hint: Option<String>) -> Problem {
    placed(text, DeTable::parse(text).ok().as_ref(), key, message, hint)
}

/// The same in a text that is parsed already.
fn placed(
    text: &str,
    table: Option<&Spanned<DeTable<'_>>>,
    key: &str,
    message: String,
    hint: Option<String>,
) -> Problem {
    let span = table.and_then(|table| locate(table.get_ref(), key));
    Problem::at(text, span.unwrap_or(0..0), key.into(), message, hint)
}

/// Sets keys in `text` from the command line: `network.rate=10Mbit`, `run.replications=3`,
/// `background.0.rate=5Mbit` (list items by number, from 0, or by their `name`). A value that is not valid TOML is a
/// string.
///
/// # Errors
/// A sentence if `text` is not TOML, an assignment has no `=`, or its key does not exist.
pub fn override_keys(text: &str, assignments: &[String]) -> Result<String, String> {
    if assignments.is_empty() {
        return Ok(text.to_owned());
    }
    let mut root: toml::Value = toml::from_str::<toml::Table>(text)
        .map_err(|e| e.message().to_owned())?
        .into();
    for assignment in assignments {
        let (key, value) = assignment
            .split_once('=')
            .ok_or_else(|| format!("`{assignment}` is no assignment; write key=value"))?;
        let value = format!("x = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut t| t.remove("x"))
            .unwrap_or_else(|| value.into());
        let mut place = &mut root;
        for step in key.trim().split('.') {
            let known = names(place);
            place = descend(place, step).ok_or_else(|| {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let hint = suggest(step, &known, "there are");
                format!("`{}`: nothing here is called `{step}`; {hint}", key.trim())
            })?;
        }
        *place = value;
    }
    toml::to_string_pretty(&root).map_err(|e| e.to_string())
}

/// The names of the items of an array, which `descend` finds.
fn names(value: &toml::Value) -> Vec<String> {
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    let named = items.iter().filter_map(|i| i.get("name")?.as_str());
    named.map(str::to_owned).collect()
}

fn descend<'v>(value: &'v mut toml::Value, step: &str) -> Option<&'v mut toml::Value> {
    match value {
        toml::Value::Table(table) => Some(
            table
                .entry(step)
                .or_insert_with(|| toml::Value::Table(toml::Table::new())),
        ),
        toml::Value::Array(items) => {
            let index = step.parse().ok().or_else(|| {
                items
                    .iter()
                    .position(|i| i.get("name").and_then(toml::Value::as_str) == Some(step))
            })?;
            items.get_mut(index)
        }
        _ => None,
    }
}

fn plain(error: &toml::de::Error, text: &str) -> Finding {
    Finding {
        span: error.span().unwrap_or(text.len()..text.len()),
        key: String::new(),
        message: error.message().trim().replace('\n', "; "),
        hint: None,
    }
}

/// The span of the value of a dotted key or, if it is missing, of the closest table that contains it.
fn locate(table: &DeTable<'_>, key: &str) -> Option<Range<usize>> {
    let mut steps = key.split(['.', '[']).map(|s| s.trim_end_matches(']'));
    let mut here = entry(table, steps.next()?)?;
    for step in steps {
        let below = match here.get_ref() {
            DeValue::Table(t) => entry(t, step),
            DeValue::Array(a) => step.parse().ok().and_then(|i: usize| a.get(i)),
            _ => None,
        };
        match below {
            Some(value) => here = value,
            None => break,
        }
    }
    Some(here.span())
}

fn entry<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table
        .iter()
        .find(|(k, _)| k.get_ref() == key)
        .map(|(_, v)| v)
}
