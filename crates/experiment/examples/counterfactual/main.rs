//! Is what a learnt model answers true? Known worlds are tapped, learnt from the tap, and asked what would be if the
//! network were another one. `scripts/counterfactual` runs it; docs/counterfactual.md has what came out.

mod ask;
mod changes;
mod worlds;

use std::io::Write as _;

use ask::{Inquiry, PREDICTORS};

fn main() -> Result<(), worlds::Failed> {
    let mut inquiry = Inquiry::default();
    let mut names: Vec<&'static str> = worlds::NAMES.to_vec();
    let mut changes = changes::all();
    let mut args = std::env::args().skip(1);
    while let Some(key) = args.next() {
        let value = args.next().ok_or_else(|| format!("{key} wants a value"))?;
        match key.as_str() {
            "--seeds" => inquiry.seeds = value.parse()?,
            "--duration" => inquiry.duration = value.parse()?,
            "--threads" => inquiry.threads = value.parse()?,
            "--world" => names.retain(|n| *n == value),
            "--change" => changes.retain(|c| c.0.contains(&*value)),
            _ => {
                return Err(format!(
                    "{key}: one of --seeds, --duration, --threads, --world, --change"
                )
                .into());
            }
        }
    }
    let scratch = tempfile::tempdir()?;
    let mut out = std::io::stdout().lock();
    let mut tables = Vec::new();
    for name in names {
        let world = worlds::world(name, scratch.path())?;
        match inquiry.world(&world, &changes, scratch.path())? {
            Some(table) => {
                writeln!(out, "{}", table.details())?;
                tables.push(table);
            }
            None => writeln!(
                out,
                "### {name}\n\nThe tap saw no packet: nothing was played.\n"
            )?,
        }
        out.flush()?;
    }
    writeln!(out, "| world | of | {} |", PREDICTORS.join(" | "))?;
    writeln!(out, "|---|---|{}", "---:|".repeat(PREDICTORS.len()))?;
    for table in &tables {
        write!(out, "{}", table.summary())?;
    }
    Ok(())
}
