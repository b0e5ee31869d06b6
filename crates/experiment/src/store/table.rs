//! Rows of results as rows of Parquet tables.

use std::path::Path;
use std::sync::Arc;

pub(super) use swell_table::Columns;
pub use swell_table::{Column, Kind};

use super::StoreError;
use crate::observe::Cell;

/// A row type: its table, and the conversion of a row to values in the order of its columns.
pub(super) trait Row: Sized {
    const TABLE: &'static str;
    const COLUMNS: &'static [Column];
    fn put(&self, values: &mut Columns);
    /// The inverse of `put`; `None` if a text is not one of the expected values.
    fn take(values: &mut Columns) -> Option<Self>;
}

/// Columns that identify the run of a row.
const KEY: [Column; 3] = [
    Column {
        name: "foreground",
        kind: Kind::Text,
        unit: "",
        doc: "Name of the foreground in the experiment file.",
    },
    Column {
        name: "background",
        kind: Kind::Text,
        unit: "",
        doc: "Name of the background in the experiment file.",
    },
    Column {
        name: "replication",
        kind: Kind::U32,
        unit: "",
        doc: "Replication, from 0. Its seed is the experiment's plus this.",
    },
];

/// The columns of a table: those that identify the run, then the row's own.
pub(super) fn all_columns<R: Row>() -> Vec<Column> {
    KEY.iter().chain(R::COLUMNS).copied().collect()
}

/// A field of a row: the value of one column, or of several.
pub(super) trait Value: Sized {
    fn put(&self, values: &mut Columns);
    /// The inverse of `put`; `None` if a text is not one of the expected values.
    fn take(values: &mut Columns) -> Option<Self>;
}

/// Implements `Value` for numbers.
macro_rules! numbers {
    ($($number:ty: $put:ident, $take:ident;)*) => {$(
        impl Value for $number {
            fn put(&self, values: &mut Columns) {
                values.$put(*self);
            }
            fn take(values: &mut Columns) -> Option<$number> {
                Some(values.$take())
            }
        }
    )*};
}

numbers! {
    u32: put_u32, take_u32;
    u64: put_u64, take_u64;
    f64: put_f64, take_f64;
}

impl Value for String {
    fn put(&self, values: &mut Columns) {
        values.put_text(self);
    }
    fn take(values: &mut Columns) -> Option<String> {
        Some(values.take_text())
    }
}

impl Value for Arc<str> {
    fn put(&self, values: &mut Columns) {
        values.put_text(self);
    }
    fn take(values: &mut Columns) -> Option<Arc<str>> {
        Some(values.take_text().into())
    }
}

impl<V: Value + Default, const N: usize> Value for [V; N] {
    fn put(&self, values: &mut Columns) {
        self.iter().for_each(|v| v.put(values));
    }
    fn take(values: &mut Columns) -> Option<[V; N]> {
        let all = [(); N].map(|()| V::take(values));
        let known = all.iter().all(Option::is_some);
        known.then(|| all.map(Option::unwrap_or_default))
    }
}

/// The run of a row, as stored in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub foreground: String,
    pub background: String,
    pub replication: u32,
}

/// Writes a table. Equal rows give equal bytes.
pub(super) fn write<'r, R: Row + 'r>(
    path: &Path,
    mut rows: impl Iterator<Item = (&'r Cell, &'r R)>,
) -> Result<(), StoreError> {
    let made_by = format!("swell {}", crate::VERSION);
    swell_table::write(
        path,
        R::TABLE,
        &made_by,
        &all_columns::<R>(),
        &mut |values| {
            let Some((cell, row)) = rows.next() else {
                return false;
            };
            values.put_text(&cell.foreground);
            values.put_text(&cell.background);
            values.put_u32(cell.replication);
            row.put(values);
            true
        },
    )?;
    Ok(())
}

/// Reads a table, row by row in its order.
pub(super) fn read<R: Row>(path: &Path, mut each: impl FnMut(Key, R)) -> Result<(), StoreError> {
    swell_table::read(path, &all_columns::<R>(), &mut |values| {
        let key = Key {
            foreground: values.take_text(),
            background: values.take_text(),
            replication: values.take_u32(),
        };
        let row = R::take(values);
        row.map(|row| each(key, row)).is_some()
    })?;
    Ok(())
}
