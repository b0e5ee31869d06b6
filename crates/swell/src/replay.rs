//! `swell replay`.

use std::path::Path;

use swell_base::{Code, Time, Warning};
use swell_emulate::backend::JOURNAL;
use swell_emulate::{Entry, Recorded, read_journal};
use swell_experiment::{Plan, Results};

use crate::cli::ReplayArgs;
use crate::fail::Fail;
use crate::out;

pub(crate) fn replay(args: &ReplayArgs, json: bool) -> Result<(), Fail> {
    let results = Results::load(&args.run).map_err(Fail::usage)?;
    let file = args.run.join("experiment.toml");
    let text = std::fs::read_to_string(&file)
        .map_err(|e| Fail::usage(format!("{}: {e}", file.display())))?;
    let plan = Plan::resolve(&text, &file.display().to_string(), &args.run).map_err(Fail::usage)?;
    let mut rows = Vec::new();
    let mut differing = 0;
    for (index, cell) in plan.cells.iter().enumerate() {
        let name = swell_experiment::run::name(index, cell);
        let path = args
            .run
            .join(swell_experiment::run::OUTPUT)
            .join(&name)
            .join(JOURNAL);
        if !path.exists() {
            continue;
        }
        let Some(spec) = plan.spec(cell, &results.manifest.measured) else {
            continue;
        };
        let recorded = journal(&path, Time::ZERO + spec.duration)?;
        let entries = recorded.entries;
        if !recorded.whole {
            let end = entries.last().map_or(Time::ZERO, Entry::at);
            out::warnings(&[Warning::warning(
                Code::JournalCut,
                format!("{name}: the journal has no end; compared is what it has up to {end}"),
            )]);
        }
        let difference = swell_emulate::backend::replay(&spec, &entries).map_err(Fail::failed)?;
        let departures = entries
            .iter()
            .filter(|e| matches!(e, Entry::Departure { .. }))
            .count();
        differing += usize::from(difference.is_some());
        if json {
            rows.push(serde_json::json!({
                "run": name, "departures": departures, "identical": difference.is_none(),
                "first_difference": difference.map(|d| format!("{d:?}")),
            }));
            continue;
        }
        out::data(&match difference {
            None => format!("{name}: {departures} packets left as they did, to the nanosecond"),
            Some([then, now]) => {
                format!("{name}: differs first where {then:?} was recorded and {now:?} came out")
            }
        });
        rows.push(name.into());
    }
    if json {
        out::json(&rows.clone().into());
    }
    if rows.is_empty() {
        let name = args.run.display();
        return Err(Fail::usage(format!("{name} has no recorded run"))
            .hint("`swell under --record` and `swell run --record` keep journals"));
    }
    if differing > 0 {
        return Err(Fail::failed(format!(
            "{differing} of {} runs came out differently",
            rows.len()
        )));
    }
    Ok(())
}

fn journal(path: &Path, until: Time) -> Result<Recorded, Fail> {
    let named = |e: &dyn std::fmt::Display| Fail::usage(format!("{}: {e}", path.display()));
    let mut file = std::fs::File::open(path).map_err(|e| named(&e))?;
    read_journal(&mut file, until).map_err(|e| named(&e))
}
