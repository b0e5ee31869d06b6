//! What a file writes as one word where all else has its default, and as a table else.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

/// A table of which one key may stand alone.
pub(super) trait Short: DeserializeOwned + JsonSchema {
    /// What the schema calls the way a file writes one.
    const SPEC: &'static str;
    /// The key.
    const KEY: &'static str;
    /// What stands alone: the name or the path of what.
    const WHAT: &'static str;
}

/// One as a file writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Named<T>(pub T);

struct Visitor<T>(PhantomData<T>);

impl<'de, T: Short> serde::de::Visitor<'de> for Visitor<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a table with its `{}`", T::WHAT, T::KEY)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Named<T>, E> {
        let word = std::iter::once((T::KEY, name));
        T::deserialize(MapDeserializer::<_, E>::new(word)).map(Named)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Named<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Named)
    }
}

impl<'de, T: Short> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Named<T>, D::Error> {
        d.deserialize_any(Visitor(PhantomData))
    }
}

impl<T: Short> JsonSchema for Named<T> {
    fn schema_name() -> Cow<'static, str> {
        T::SPEC.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = T::json_schema(generator).to_value();
        let all = kinds["oneOf"].as_array().into_iter().flatten();
        let names: Vec<_> = all.map(|k| &k["properties"][T::KEY]["const"]).collect();
        let word = match names.is_empty() {
            true => schemars::json_schema!({"type": "string"}),
            false => schemars::json_schema!({"type": "string", "enum": names}),
        };
        let table = generator.subschema_for::<T>();
        schemars::json_schema!({
            "description": format!("Either {}, or a table with its `{}` and what else differs.", T::WHAT, T::KEY),
            "anyOf": [word, table]
        })
    }
}
