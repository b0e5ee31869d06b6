//! Several backgrounds at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Traffic;
use super::contract::{Keys, Resolving, Role, Slot, reads};
use crate::file::findings::Findings;
use crate::measure::Measure;

/// Several backgrounds at once, each at its own rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// Names of other backgrounds, which flow together. Their order does not matter.
    pub of: Vec<String>,
}

impl Keys for Mix {
    reads!(name);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        if self.of.is_empty() {
            found.add(
                at.key("of"),
                "a mix of nothing",
                "name other backgrounds, or use kind = \"none\"",
            );
        }
    }

    fn parts(&self) -> &[String] {
        &self.of
    }

    /// The offered loads of its parts do not show what the network carries of all together. That needs whole runs.
    fn foretells(&self) -> bool {
        false
    }

    /// It has no traffic of its own; its parts do.
    fn resolve(&self, _: &Resolving<'_>) -> Option<Traffic> {
        None
    }

    fn measures(&self) -> Vec<Measure> {
        Vec::new()
    }

    fn describe(&self, _: Role) -> String {
        format!("{} together", self.of.join(" and "))
    }
}
