//! Values that a file may write as a single word, or as a table if other keys differ from their defaults.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

/// A table that may be abbreviated to the value of one key.
pub(super) trait Short: DeserializeOwned + JsonSchema {
    /// Name of the abbreviated form in the schema.
    const SPEC: &'static str;
    /// The key.
    const KEY: &'static str;
    /// Description of the abbreviated value, such as the name or path of something.
    const WHAT: &'static str;
}

/// A value in either of the two forms.
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

/// Whether a value need not be written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
