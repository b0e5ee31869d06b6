//! The axis values at which a line is run (`at`).

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Values of axes, by the axis.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum Places {
    /// All combinations of these.
    One(BTreeMap<String, Vec<f64>>),
    /// All combinations of each.
    Several(Vec<BTreeMap<String, Vec<f64>>>),
}

impl Default for Places {
    fn default() -> Places {
        Places::One(BTreeMap::new())
    }
}

/// Written by hand: for an untagged enum, serde reports that no variant matches, but not what is wrong.
impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Places, D::Error> {
        deserializer.deserialize_any(PlacesVisitor)
    }
}

struct PlacesVisitor;

impl<'de> Visitor<'de> for PlacesVisitor {
    type Value = Places;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of lists of numbers, or a list of such tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Places, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(Places::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Places, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(seq)).map(Places::Several)
    }
}

impl Places {
    /// The tables.
    pub(super) fn all(&self) -> &[BTreeMap<String, Vec<f64>>] {
        match self {
            Places::One(one) => std::slice::from_ref(one),
            Places::Several(all) => all,
        }
    }
}
