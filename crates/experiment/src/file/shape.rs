//! Validates a TOML document against the JSON schema: known keys, required keys, types, names of enums, units.
//! The schema is derived from the types, so that editors, this check and serde agree. Unlike serde, this check finds
//! *every* problem, with its position.

use std::ops::Range;
use std::str::FromStr;

use serde_json::Value;
use swell_base::{Bytes, Dur, QueueLimit, Rate};
use toml::de::{DeTable, DeValue};

use super::RateSpec;
use super::names::suggest;

/// A problem at a position of the text.
pub(super) struct Finding {
    pub span: Range<usize>,
    pub key: String,
    pub message: String,
    pub hint: Option<String>,
}

/// Checks tables against a schema.
pub(super) struct Shape<'s> {
    definitions: &'s Value,
    findings: Vec<Finding>,
}

impl<'s> Shape<'s> {
    /// Everything in `table` that `schema` does not allow.
    pub(super) fn check(
        schema: &'s Value,
        table: &DeTable<'_>,
        span: Range<usize>,
    ) -> Vec<Finding> {
        let mut shape = Shape {
            definitions: &schema["$defs"],
            findings: Vec::new(),
        };
        shape.table(schema, table, span, "");
        shape.findings
    }

    fn add(&mut self, span: Range<usize>, key: &str, message: String, hint: Option<String>) {
        self.findings.push(Finding {
            span,
            key: key.into(),
            message,
            hint,
        });
    }

    fn value(&mut self, schema: &'s Value, value: &DeValue<'_>, span: Range<usize>, key: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            return match unit(name) {
                Some(parse) => self.quantity(parse, &self.definitions[name], value, span, key),
                None => self.value(&self.definitions[name], value, span, key),
            };
        }
        if let Some(choices) = schema["anyOf"].as_array() {
            // An optional value is "this or null". Other choices differ by their types.
            let fitting = choices.iter().find(|c| self.takes(c, value));
            let fallback = choices.iter().find(|c| c["type"] != "null");
            if let Some(choice) = fitting.or(fallback) {
                self.value(choice, value, span, key);
            }
            return;
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            return match value {
                DeValue::Table(table) if choices.iter().any(is_object) => {
                    self.variant(choices, table, span, key);
                }
                _ if choices.iter().any(is_object) => {
                    let message = format!("expected a table, found {}", described(value));
                    let hint = self.example(choices, value, key);
                    self.add(span, key, message, hint);
                }
                _ => {
                    let names: Vec<&str> = choices.iter().flat_map(names).collect();
                    self.name(&names, value, span, key);
                }
            };
        }
        let listed: Vec<&str> = names(schema).collect();
        if !listed.is_empty() {
            return self.name(&listed, value, span, key);
        }
        let expected = schema["type"]
            .as_str()
            .or_else(|| schema["type"].as_array()?.iter().find_map(Value::as_str));
        match (expected, value) {
            (Some("object"), DeValue::Table(table)) => self.table(schema, table, span, key),
            (Some("array"), DeValue::Array(items)) => {
                for (i, item) in items.iter().enumerate() {
                    let place = format!("{key}[{i}]");
                    self.value(&schema["items"], item.get_ref(), item.span(), &place);
                }
            }
            (Some("integer"), DeValue::Integer(n)) => {
                let text = n.as_str().replace('_', "");
                let parsed = i128::from_str_radix(&text, n.radix()).unwrap_or(i128::MAX);
                let (low, high) = match schema["format"].as_str() {
                    Some("uint32") => (0, i128::from(u32::MAX)),
                    // TOML integers are signed 64-bit.
                    Some("uint64") => (0, i128::from(i64::MAX)),
                    _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
                };
                if !(low..=high).contains(&parsed) {
                    self.add(
                        span,
                        key,
                        format!("{text} is out of range ({low} to {high})"),
                        None,
                    );
                }
            }
            (Some("string"), DeValue::String(_))
            | (Some("boolean"), DeValue::Boolean(_))
            | (Some("number"), DeValue::Float(_) | DeValue::Integer(_))
            | (None, _) => {}
            (Some(expected), _) => {
                let expected = match expected {
                    "object" => "a table",
                    "array" => "a list",
                    "integer" => "a whole number",
                    "string" => "a string",
                    "boolean" => "true or false",
                    _ => "a number",
                };
                self.wrong_type(expected, value, span, key);
            }
        }
    }

    /// Whether `schema` accepts the type of `value`, whatever its contents.
    fn takes(&self, schema: &Value, value: &DeValue<'_>) -> bool {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            return match unit(name) {
                Some(_) => value.is_str(),
                None => self.takes(&self.definitions[name], value),
            };
        }
        let choices = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        if let Some(choices) = choices {
            return choices.iter().any(|c| self.takes(c, value));
        }
        let types = schema["type"]
            .as_array()
            .map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
        match value {
            DeValue::Table(_) => types.iter().any(|t| t == "object"),
            DeValue::Array(_) => types.iter().any(|t| t == "array"),
            DeValue::String(_) => types.iter().any(|t| t == "string"),
            DeValue::Boolean(_) => types.iter().any(|t| t == "boolean"),
            DeValue::Integer(_) => types.iter().any(|t| t == "integer" || t == "number"),
            DeValue::Float(_) => types.iter().any(|t| t == "number"),
            DeValue::Datetime(_) => false,
        }
    }

    fn table(&mut self, schema: &'s Value, table: &DeTable<'_>, span: Range<usize>, key: &str) {
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let place = |name: &str| match key {
            "" => name.to_owned(),
            _ => format!("{key}.{name}"),
        };
        for (name, value) in table {
            match properties.get(name.get_ref().as_ref()) {
                Some(sub) => {
                    let sub_key = place(name.get_ref());
                    self.value(sub, value.get_ref(), value.span(), &sub_key);
                }
                None => {
                    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                    // For example `rate_up`, although directions are tables: `up = { rate = ... }`.
                    let direction = name.get_ref().split_once(['_', '-']).filter(|(own, way)| {
                        ["up", "down"].contains(way) && known.contains(own) && known.contains(way)
                    });
                    let hint = match (direction, schema["properties"]["kind"]["const"].as_str()) {
                        (Some((own, way)), _) => format!("write `{way} = {{ {own} = ... }}`"),
                        (None, Some(kind)) if name.get_ref() == "rate" => format!(
                            "kind = \"{kind}\" has no rate to set; known keys: {}",
                            known.join(", ")
                        ),
                        _ => suggest(name.get_ref(), &known, "known keys"),
                    };
                    self.add(
                        name.span(),
                        &place(name.get_ref()),
                        format!("unknown key `{}`", name.get_ref()),
                        Some(hint),
                    );
                }
            }
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            let Some(name) = name.as_str() else { continue };
            if !table.keys().any(|k| k.get_ref() == name) {
                let what = properties[name]["description"].as_str().unwrap_or("");
                self.add(
                    span.clone(),
                    &place(name),
                    format!("missing key `{name}`"),
                    (!what.is_empty()).then(|| format!("{name}: {}", first_sentence(what))),
                );
            }
        }
    }

    /// A hint for a bare `value` in the place of a table: the first of `choices` that requires only one key of this
    /// type, else their kinds.
    fn example(&self, choices: &[Value], value: &DeValue<'_>, key: &str) -> Option<String> {
        let name = key.rsplit('.').next().unwrap_or(key);
        let needs = |choice: &Value| {
            let required = choice["required"].as_array().into_iter().flatten();
            let mut others = required.filter_map(Value::as_str).filter(|k| *k != "kind");
            let only = others.next().filter(|_| others.next().is_none())?;
            self.takes(&choice["properties"][only], value)
                .then(|| only.to_owned())
        };
        let kind = |choice: &Value| {
            choice["properties"]["kind"]["const"]
                .as_str()
                .map(String::from)
        };
        // `--loss` of commands takes a share as 0.1%; here it is the number 0.001.
        if let Some(share) = percentage(value) {
            let takes = |choice: &Value| {
                let properties = choice["properties"].as_object()?;
                let mut numbers = properties.iter().filter(|(_, p)| p["type"] == "number");
                let only = numbers.next().filter(|_| numbers.next().is_none())?.0;
                Some((kind(choice)?, only.clone()))
            };
            if let Some((chosen, only)) = choices.iter().find_map(takes) {
                return Some(format!(
                    "write {name} = {{ kind = \"{chosen}\", {only} = {share} }}"
                ));
            }
        }
        let found = choices.iter().find_map(|c| Some((kind(c)?, needs(c)?)));
        if let Some((chosen, only)) = found {
            let text = bare(value)?;
            return Some(format!(
                "write {name} = {{ kind = \"{chosen}\", {only} = {text} }}"
            ));
        }
        let kinds: Vec<String> = choices.iter().filter_map(kind).collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        (!kinds.is_empty())
            .then(|| format!("write {name} = {{ kind = {}, ... }}", quoted_list(&kinds)))
    }

    /// Checks a table whose `kind` selects one of `choices`.
    fn variant(
        &mut self,
        choices: &'s [Value],
        table: &DeTable<'_>,
        span: Range<usize>,
        key: &str,
    ) {
        let kinds: Vec<&str> = choices
            .iter()
            .filter_map(|c| c["properties"]["kind"]["const"].as_str())
            .collect();
        let place = format!("{key}.kind");
        let Some((_, kind)) = table.iter().find(|(k, _)| k.get_ref() == "kind") else {
            let hint = format!("write kind = {}", quoted_list(&kinds));
            return self.add(span, &place, "missing key `kind`".into(), Some(hint));
        };
        let chosen = kind.get_ref().as_str().and_then(|name| {
            choices
                .iter()
                .find(|c| c["properties"]["kind"]["const"] == name)
        });
        match chosen {
            Some(choice) => self.table(choice, table, span, key),
            None => self.name(&kinds, kind.get_ref(), kind.span(), &place),
        }
    }

    fn name(&mut self, known: &[&str], value: &DeValue<'_>, span: Range<usize>, key: &str) {
        match value.as_str() {
            Some(text) if known.contains(&text) => {}
            Some(text) => {
                let message = format!("unknown value `{text}`");
                self.add(
                    span,
                    key,
                    message,
                    Some(suggest(text, known, "known values")),
                );
            }
            None => self.wrong_type(&quoted_list(known), value, span, key),
        }
    }

    fn quantity(
        &mut self,
        parse: fn(&str) -> Option<String>,
        definition: &Value,
        value: &DeValue<'_>,
        span: Range<usize>,
        key: &str,
    ) {
        let example = definition["examples"][0].as_str().unwrap_or("").to_owned();
        match value.as_str() {
            Some(text) => {
                if let Some(error) = parse(text) {
                    self.add(span, key, error, Some(format!("for example \"{example}\"")));
                }
            }
            None => {
                let hint = format!("write it as a string with its unit, for example \"{example}\"");
                let message = format!(
                    "expected a quantity with its unit, found {}",
                    described(value)
                );
                self.add(span, key, message, Some(hint));
            }
        }
    }

    fn wrong_type(&mut self, expected: &str, value: &DeValue<'_>, span: Range<usize>, key: &str) {
        let message = format!("expected {expected}, found {}", described(value));
        self.add(span, key, message, None);
    }
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
}

/// The strings an enum's schema allows.
fn names(schema: &Value) -> impl Iterator<Item = &str> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    listed.chain(schema.get("const")).filter_map(Value::as_str)
}

/// The parser for a quantity with this type name; it returns the reason if a text is invalid.
fn unit(name: &str) -> Option<fn(&str) -> Option<String>> {
    fn reason<T: FromStr<Err = swell_base::UnitError>>(text: &str) -> Option<String> {
        text.parse::<T>().err().map(|e| e.to_string())
    }
    match name {
        "Dur" => Some(reason::<Dur>),
        "Rate" => Some(reason::<Rate>),
        "Bytes" => Some(reason::<Bytes>),
        "QueueLimit" => Some(reason::<QueueLimit>),
        "RateSpec" => Some(reason::<RateSpec>),
        _ => None,
    }
}

/// Formats a scalar as TOML.
/// A number that is written as a string, perhaps in per cent.
fn percentage(value: &DeValue<'_>) -> Option<f64> {
    let DeValue::String(text) = value else {
        return None;
    };
    let (number, unit) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text.trim(), 1.0),
    };
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some(number / unit)
}

fn bare(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(s) => Some(format!("\"{s}\"")),
        DeValue::Integer(n) => Some(n.as_str().to_owned()),
        DeValue::Float(n) => Some(n.as_str().to_owned()),
        DeValue::Boolean(b) => Some(b.to_string()),
        _ => None,
    }
}

fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(s) => format!("the string \"{s}\""),
        DeValue::Integer(n) => format!("the number {}", n.as_str()),
        DeValue::Float(n) => format!("the number {}", n.as_str()),
        DeValue::Boolean(b) => format!("{b}"),
        DeValue::Datetime(_) => "a date".into(),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

fn quoted_list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("\"{n}\"")).collect();
    quoted.join(" or ")
}

fn first_sentence(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match joined.find(". ") {
        Some(end) => joined[..=end].to_owned(),
        None => joined,
    }
}
