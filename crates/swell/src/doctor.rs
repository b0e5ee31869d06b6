//! `swell doctor`.

use std::path::Path;

use swell_host::doctor::{State, clean_up, examine};

use crate::cli::DoctorArgs;
use crate::fail::Fail;
use crate::out;
use crate::tables::wrapped;

pub(crate) fn doctor(args: &DoctorArgs, json: bool) -> Result<(), Fail> {
    if args.fix {
        let (processes, directories) = (clean_up(), swell_host::scratch::sweep());
        out::say(&format!(
            "{processes} left-over processes ended, {directories} directories removed"
        ));
    }
    let findings = examine(Path::new("/proc/self/exe"));
    if json {
        let row = |f: &swell_host::doctor::Finding| serde_json::json!({ "what": f.what, "state": word(f.state), "detail": f.detail });
        out::json(&findings.iter().map(row).collect::<Vec<_>>().into());
    } else {
        for f in &findings {
            out::data(&wrapped(&format!(
                "{:8} {}: {}",
                word(f.state),
                f.what,
                f.detail
            )));
        }
    }
    match findings.iter().any(|f| f.state == State::Missing) {
        true => Err(Fail::failed("emulations do not work here as things are")),
        false => Ok(()),
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Good => "good",
        State::Limited => "limited",
        State::Missing => "missing",
    }
}
