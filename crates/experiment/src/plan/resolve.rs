//! From the text of an experiment file to its plan.

use std::collections::BTreeMap;
use std::path::Path;

use super::traces::Traces;
use super::{Plan, cells, deliveries};
use crate::file::{self, Problem, Problems};
use crate::kinds::{Files, Input, Part};

impl Plan {
    /// Reads and resolves an experiment. `source` is its name in messages; paths of model files and captures are
    /// relative to `base`.
    ///
    /// # Errors
    /// Every problem found in the file, or else with its models and captures.
    pub fn resolve(text: &str, source: &str, base: &Path) -> Result<Plan, Problems> {
        Plan::resolve_with(text, source, base, &Traces::default())
    }

    /// Like [`resolve`](Plan::resolve), with `known` as a cache of captures and models.
    ///
    /// # Errors
    /// Like [`resolve`](Plan::resolve).
    pub fn resolve_with(
        text: &str,
        source: &str,
        base: &Path,
        known: &Traces,
    ) -> Result<Plan, Problems> {
        let mut plan = Plan::outline(text, source, base, known)?;
        let learnt = plan.imitate(known, |_| true);
        learnt.map_err(|wrong| plan.imitation(text, wrong))?;
        Ok(plan)
    }

    /// Like [`resolve_with`](Plan::resolve_with), for the runs of one foreground beside one background. Other
    /// backgrounds are kept only if this one consists of them or takes their rates.
    ///
    /// # Errors
    /// Like [`resolve`](Plan::resolve).
    pub fn resolve_one(
        text: &str,
        source: &str,
        base: &Path,
        known: &Traces,
        [foreground, background]: [&str; 2],
    ) -> Result<Plan, Problems> {
        let mut plan = Plan::outline(text, source, base, known)?;
        let mut used = vec![background.to_owned()];
        let mut next = 0;
        while let Some(name) = used.get(next) {
            next += 1;
            let part = plan.file.background.iter().find(|b| b.name() == name);
            for other in part.into_iter().flat_map(|p| p.needs()) {
                if !used.contains(other) {
                    used.push(other.clone());
                }
            }
        }
        let is_used = |name: &str| used.iter().any(|own| own == name);
        let learnt = plan.imitate(known, is_used);
        learnt.map_err(|wrong| plan.imitation(text, wrong))?;
        plan.file.background.retain(|b| is_used(b.name()));
        plan.cells
            .retain(|c| c.foreground == foreground && c.background == background);
        Ok(plan)
    }

    fn imitation(&self, text: &str, wrong: (usize, String)) -> Problems {
        self.problem(text, "of", wrong)
    }

    /// A problem with this key of a background.
    fn problem(&self, text: &str, key: &str, (i, why): (usize, String)) -> Problems {
        let key = format!("background[{i}].{key}");
        Problems {
            file: self.source.clone(),
            problems: vec![file::problem(text, &key, why, None)],
        }
    }

    /// Like [`resolve_with`](Plan::resolve_with), but without the models of backgrounds that imitate others. This is
    /// enough to check a file and to compare it with others, and it avoids simulating the imitated backgrounds.
    ///
    /// # Errors
    /// Like [`resolve`](Plan::resolve).
    pub fn outline(
        text: &str,
        source: &str,
        base: &Path,
        known: &Traces,
    ) -> Result<Plan, Problems> {
        let mut file = file::read(text, source)?;
        let (mut inputs, mut foreground_inputs) = (BTreeMap::new(), BTreeMap::new());
        let mut problems: Vec<Problem> = Vec::new();
        let seed = file.run.seed;
        let mut read = |part: &mut Part, list: &str, i: usize, to: &mut BTreeMap<String, Input>| {
            // Files in the run directory: those of backgrounds have had no such prefix from the beginning.
            let prefix = match list {
                "background" => format!("{i}-"),
                list => format!("{list}-{i}-"),
            };
            let from = Files {
                prefix,
                base,
                known,
                seed,
            };
            match part.keys_mut().read(&from) {
                Ok(Some(input)) => {
                    to.insert(part.name().to_owned(), input);
                }
                Ok(None) => {}
                Err((key, (message, hint))) => {
                    let key = format!("{list}[{i}].{key}");
                    problems.push(file::problem(text, &key, message, hint));
                }
            }
        };
        for (i, part) in file.background.iter_mut().enumerate() {
            read(part, "background", i, &mut inputs);
        }
        for (i, part) in file.foreground.iter_mut().enumerate() {
            read(part, "foreground", i, &mut foreground_inputs);
        }
        let preset = file.write_out();
        let named = file.links.iter_mut().enumerate();
        let named = named.map(|(i, link)| match preset {
            true => ("network".to_owned(), &mut link.keys),
            false => (format!("links[{i}]"), &mut link.keys),
        });
        let only = [("network".to_owned(), &mut file.network.link)].into_iter();
        let deliveries = deliveries::resolve(only.chain(named), base, &mut |key, complaint| {
            problems.push(file::problem(text, &key, complaint.0, complaint.1));
        });
        if !problems.is_empty() {
            return Err(Problems {
                file: source.into(),
                problems,
            });
        }
        let plan = Plan {
            toml: file.to_toml(),
            cells: cells(&file),
            file,
            source: source.into(),
            inputs,
            foreground_inputs,
            deliveries,
            energy_known: false,
        };
        plan.check_imitations()
            .map_err(|wrong| plan.imitation(text, wrong))?;
        match plan.unscalable() {
            Some(wrong) => Err(plan.problem(text, "rate", wrong)),
            None => Ok(plan),
        }
    }
}
