//! No traffic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;
use super::contract::{Information, Keys, Resolving, Role, Shown, Slot, reads};
use crate::file::findings::Findings;
use crate::measure::Measure;

/// No background.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {
    /// The name it goes by in tables and pictures.
    pub name: String,
}

impl Keys for Nothing {
    reads!(name);

    fn substitute() -> Option<Information> {
        Some(Information::Nothing)
    }

    fn is_none(&self) -> bool {
        true
    }

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        at.simulated_only(
            "there is nothing to run against the clock",
            "write backend = \"simulated\", or a foreground of another kind",
            found,
        );
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("is no traffic: there is no rate to match")
    }

    fn resolve(&self, _: &Resolving<'_>) -> Option<Traffic> {
        None
    }

    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }

    fn clients(&self) -> u32 {
        0
    }

    fn describe(&self, role: Role) -> String {
        format!("no {}", role.word())
    }

    fn shown(&self) -> Shown {
        Shown::Reference
    }
}
