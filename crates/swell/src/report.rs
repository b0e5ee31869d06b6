//! `swell report`.

use std::path::Path;

use groundswell::files;
use swell_experiment::Results;

use crate::cli::ReportArgs;
use crate::fail::Fail;
use crate::{interrupt, out, output};

/// Name of the page in a run directory.
pub(crate) const PAGE: &str = "report.html";

pub(crate) fn report(args: &ReportArgs, json: bool) -> Result<(), Fail> {
    let page = args.output.clone().unwrap_or_else(|| args.run.join(PAGE));
    let results = groundswell::show::results(&args.run)?;
    files::outputs([&page], &[])?;
    write(&results, &page)?;
    if json {
        out::json(&serde_json::json!({"report": output::path(&page)}));
    } else {
        out::data(&format!("report: {}", page.display()));
    }
    Ok(())
}

/// Writes the page about `results`.
pub(crate) fn write(results: &Results, page: &Path) -> Result<(), Fail> {
    interrupt::write(page, swell_report::render(results).as_bytes())
}
