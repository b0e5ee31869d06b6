//! Builds a suite: an experiment that compares a learnt background with cheaper substitutes, to find the cheapest that
//! is sufficient.
//!
//! The cost of a background is the information that is needed to generate it. In ascending order: nothing; a mean rate
//! (`cbr`, `poisson`); also the distribution of its bursts (`on-off`); the packets of a capture (`replay`, if the file
//! has one); a learnt model without any of its dependencies; the model without one of them; the whole model.

use swell_traffic::Dependency;
use toml::{Table, Value};

use crate::file::File;
use crate::kinds::{Information, load_keys, substitutes};

/// The name of a model with one dependency dropped. Names are short, so that they fit into tables of 80 columns.
fn short(dropped: Dependency) -> &'static str {
    match dropped {
        Dependency::ResponseOnRequest => "any-response",
        Dependency::SizeOnClass => "any-size",
        Dependency::ThinkOnSize => "any-think",
        Dependency::PathOnUser => "any-path",
        Dependency::WithinSession => "any-session",
        Dependency::CapacityOnRtt => "any-capacity",
    }
}

/// Replaces the backgrounds in `text`, which parses to `file`, by those of the suite: the substitutes for `learnt`, the
/// cheapest first, and last `learnt` itself. If the file already has a background of one of these kinds, it keeps its
/// keys but takes the rate of `learnt`. Other backgrounds are dropped. `None` selects the first learnt background.
///
/// # Errors
/// A sentence, if the file has no such background.
pub fn suite(text: &str, file: &File, learnt: Option<&str>) -> Result<String, String> {
    let mut models = file.background.iter().filter(|b| b.is_model());
    let target = models.find(|b| learnt.is_none_or(|name| b.name() == name));
    let target = target.ok_or_else(|| match learnt {
        Some(name) => format!("no background of kind learnt is called `{name}`"),
        None => "there is no background of kind learnt whose stand-ins could be tried".to_owned(),
    })?;
    if let Some(other) = target.matches() {
        return Err(format!(
            "the suite matches all backgrounds to the rate of `{}`, which takes that of `{other}`: give it a rate of its own",
            target.name()
        ));
    }
    let mut root: Table = toml::from_str(text).map_err(|e| e.message().to_owned())?;
    let given: Vec<Table> = match root.get("background") {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_table).cloned().collect(),
        _ => Vec::new(),
    };
    let text_of = |table: &Table, key: &str| {
        let value = table.get(key).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let own = given.iter().find(|t| text_of(t, "name") == target.name());
    let own = own.ok_or("the file has no such background")?;
    let rate = format!("match:{}", target.name());
    let mut made: Vec<Table> = Vec::new();
    for (information, kind) in substitutes() {
        let there = given.iter().find(|t| text_of(t, "kind") == kind.name);
        let mut table = match there {
            Some(table) => table.clone(),
            // It needs an input file, which the suite does not have.
            None if information == Information::Packets => continue,
            None => Table::from_iter([
                ("name".to_owned(), kind.name.into()),
                ("kind".to_owned(), kind.name.into()),
            ]),
        };
        if information > Information::Nothing {
            if there.is_none() {
                for key in ["path", "reversed", "direction", "active"] {
                    if let Some(value) = own.get(key) {
                        table.insert(key.into(), value.clone());
                    }
                }
            }
            for key in kind.load_keys {
                table.remove(*key);
            }
            table.insert("rate".into(), rate.clone().into());
        }
        made.push(table);
    }
    let every = Dependency::ALL.map(|d| d.0);
    let has = target.dropped().unwrap_or_default();
    let variant = |name: &str, dropped: &[Dependency]| {
        let mut table = own.clone();
        for key in load_keys(target.kind()) {
            table.remove(*key);
        }
        table.insert("name".into(), name.into());
        table.insert("rate".into(), rate.clone().into());
        let all = every.iter();
        let all = all.filter(|i| has.contains(i) || dropped.contains(i));
        let words: Vec<Value> = all.map(|i| i.name().into()).collect();
        table.insert("independent".into(), words.into());
        table
    };
    made.push(variant("independent", &every));
    let left = every.iter().filter(|i| !has.contains(i));
    made.extend(left.map(|i| variant(short(*i), &[*i])));
    made.push(own.clone());
    distinct(&mut made, target.name());
    let all = made.into_iter().map(Value::Table).collect();
    root.insert("background".into(), Value::Array(all));
    let run = root.entry("run").or_insert_with(|| Table::new().into());
    if let Some(run) = run.as_table_mut() {
        run.insert("suite".into(), target.name().into());
    }
    toml::to_string_pretty(&root).map_err(|e| e.to_string())
}

/// Renames backgrounds with duplicate names, except `target`, because the rates of the others refer to it.
fn distinct(all: &mut [Table], target: &str) {
    let mut taken = vec![target.to_owned()];
    let last = all.len().saturating_sub(1);
    for table in &mut all[..last] {
        let Some(Value::String(name)) = table.get_mut("name") else {
            continue;
        };
        while taken.contains(name) {
            name.push('\'');
        }
        taken.push(name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::test_support::experiment;

    fn made(text: &str, learnt: Option<&str>) -> Result<File, String> {
        let file = file::read(text, "x").map_err(|e| e.to_string())?;
        let made = suite(text, &file, learnt)?;
        file::read(&made, "suite").map_err(|e| e.to_string())
    }

    #[test]
    fn a_suite_is_a_file_with_the_cheapest_first() {
        let own = "name = \"poisson\"\nkind = \"poisson\"\npacket = \"500B\"\nrate_up = \"1Mbit\"";
        let text = experiment(5).replace("name = \"poisson\"\nkind = \"poisson\"", own);
        let file = made(&text, None).unwrap();
        let names: Vec<&str> = file.background.iter().map(|b| b.name()).collect();
        let expected = [
            "none",
            "cbr",
            "poisson",
            "on-off",
            "independent",
            "any-response",
            "any-size",
            "any-think",
            "any-path",
            "any-session",
            "any-capacity",
            "learnt",
        ];
        assert_eq!(names, expected);
        assert_eq!(file.run.suite.as_deref(), Some("learnt"));
        // All have the target's rate, and the packet size in the file is kept.
        let others = &file.background[1..11];
        assert!(others.iter().all(|b| b.matches() == Some("learnt")));
        let file::Part::Poisson(poisson) = &file.background[2].0 else {
            panic!("{:?}", file.background[2]);
        };
        assert_eq!((poisson.packet.0, poisson.rate_up), (500, None));
        assert_eq!(file.background[11].matches(), None);
    }

    #[test]
    fn a_suite_is_of_the_learnt_background_that_is_named() {
        let second = "[[background]]\nname = \"cbr\"\nkind = \"learnt\"\nmodel = \"tiny.json\"\n\
                      independent = [\"think-on-size\"]\nload = \"offered\"\nrate = \"2Mbit\"\n[run]";
        let text = experiment(5).replace("[run]", second);
        let file = made(&text, Some("cbr")).unwrap();
        let names: Vec<&str> = file.background.iter().map(|b| b.name()).collect();
        // The suite does not drop a dependency that is already missing, and names stay unique.
        assert_eq!(names.len(), 11, "{names:?}");
        assert!(!names.contains(&"any-think"), "{names:?}");
        assert_eq!((names[1], names[10]), ("cbr'", "cbr"));
        assert!(made(&text, Some("nobody")).is_err());
        let text = text.replace(
            "kind = \"learnt\"\nmodel = \"tiny.json\"",
            "kind = \"greedy\"",
        );
        assert!(made(&text, None).is_err());
    }

    #[test]
    fn a_suite_needs_a_rate_that_is_not_taken_from_another_background() {
        let text = experiment(5).replace("rate = \"8Mbit\"", "rate = \"match:cbr\"");
        let text = text.replace(
            "\"poisson\"\nrate = \"match:learnt\"",
            "\"poisson\"\nrate = \"1Mbit\"",
        );
        let cbr = "[[background]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n[run]";
        let refused = made(&text.replace("[run]", cbr), None).unwrap_err();
        assert!(refused.contains("takes that of `cbr`"), "{refused}");
    }

    #[test]
    fn a_suite_names_a_background_that_sends() {
        for name in ["none", "nobody"] {
            let text = experiment(5) + &format!("suite = \"{name}\"\n");
            let error = file::read(&text, "x").unwrap_err().to_string();
            assert!(error.contains("no background that sends"), "{error}");
        }
    }
}
