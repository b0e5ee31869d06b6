//! Keys of runs on real hosts that are set after other runs.

use swell_experiment::file;

use super::bench::Bench;
use super::compiled::{Compiled, scope};
use super::error::StudyError;
use super::group::Group;
use super::reference::Numbers;
use super::results::Views;
use super::script::Trouble;
use super::template;

/// A combination with the `late` keys of its line set. They may use the results of other lines.
pub(super) fn resolved(
    compiled: &Compiled,
    numbers: &Numbers,
    group: &Group,
) -> Result<Group, StudyError> {
    let list = &compiled.file.line[group.line].late;
    let mut engine = compiled.asker();
    Views::of(compiled, numbers).register(group.column, &mut engine);
    let mut known = scope(&compiled.file, (group.column, group.line), &group.axes);
    let mut set = Vec::new();
    for (i, text) in list.iter().enumerate() {
        let filled = template::filled(&engine, text, &mut known);
        set.push(
            filled.map_err(|(Trouble::NotThere(why) | Trouble::Wrong(why))| {
                let place = compiled.place(format!("line[{}].late", group.line));
                place.item(i, &why)
            })?,
        );
    }
    let wrong = |problem| StudyError::Experiment {
        runs: group.name.clone(),
        problem,
    };
    let text = file::override_keys(&group.text, &set).map_err(wrong)?;
    let mut own = group.clone();
    own.bench = Bench::read(&text).map_err(wrong)?;
    own.hash = text.clone();
    own.text = text;
    own.assignments.extend(set);
    Ok(own)
}
