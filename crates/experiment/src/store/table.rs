//! Converts rows to Parquet columns and back, without Arrow.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::StoreError;
use crate::observe::Cell;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name, ending in its unit where it has one.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Unit: `s`, `B`, `bit/s`, or empty.
    pub unit: &'static str,
    /// Description.
    pub doc: &'static str,
}

/// Type of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text (Parquet STRING).
    Text,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Double.
    F64,
    /// Double, or null if the event did not happen. Rows in memory hold NaN instead of null.
    OptionalF64,
}

impl Kind {
    /// The name used in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::U32 => "uint32",
            Kind::U64 => "uint64",
            Kind::F64 => "double",
            Kind::OptionalF64 => "double or null",
        }
    }
}

/// Rows in a row group.
const GROUP: usize = 1 << 20;

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

/// The values of one column.
enum Values {
    Text(Vec<ByteArray>),
    U32(Vec<i32>),
    U64(Vec<i64>),
    F64(Vec<f64>),
}

/// A batch of rows, by column. Values go in and come out row by row, in the order of the columns.
pub(super) struct Columns {
    columns: Vec<Values>,
    at: usize,
    row: usize,
}

impl Columns {
    fn new(columns: &[Column]) -> Columns {
        Columns {
            columns: columns
                .iter()
                .map(|c| match c.kind {
                    Kind::Text => Values::Text(Vec::new()),
                    Kind::U32 => Values::U32(Vec::new()),
                    Kind::U64 => Values::U64(Vec::new()),
                    Kind::F64 | Kind::OptionalF64 => Values::F64(Vec::new()),
                })
                .collect(),
            at: 0,
            row: 0,
        }
    }

    fn next(&mut self) -> &mut Values {
        let at = self.at;
        self.at = (self.at + 1) % self.columns.len();
        &mut self.columns[at]
    }

    pub(super) fn text(&mut self, v: &str) {
        match self.next() {
            Values::Text(column) => column.push(v.into()),
            _ => unreachable!("a row puts values in the order of its columns"),
        }
    }

    pub(super) fn take_text(&mut self) -> String {
        let row = self.row;
        match self.next() {
            Values::Text(column) => String::from_utf8_lossy(column[row].data()).into_owned(),
            _ => unreachable!("a row takes values in the order of its columns"),
        }
    }
}

/// A field of a row: the value of one column, or of several.
pub(super) trait Value: Sized {
    fn put(&self, values: &mut Columns);
    /// The inverse of `put`; `None` if a text is not one of the expected values.
    fn take(values: &mut Columns) -> Option<Self>;
}

/// Implements `Value` for numbers. Parquet stores unsigned integers in signed types with the same bits.
macro_rules! numbers {
    ($($number:ty as $kept:ty => $values:ident;)*) => {$(
        impl Value for $number {
            fn put(&self, values: &mut Columns) {
                match values.next() {
                    Values::$values(column) => column.push(*self as $kept),
                    _ => unreachable!("a row puts values in the order of its columns"),
                }
            }
            fn take(values: &mut Columns) -> Option<$number> {
                let row = values.row;
                match values.next() {
                    Values::$values(column) => Some(column[row] as $number),
                    _ => unreachable!("a row takes values in the order of its columns"),
                }
            }
        }
    )*};
}

numbers! {
    u32 as i32 => U32;
    u64 as i64 => U64;
    f64 as f64 => F64;
}

impl Value for String {
    fn put(&self, values: &mut Columns) {
        values.text(self);
    }
    fn take(values: &mut Columns) -> Option<String> {
        Some(values.take_text())
    }
}

impl Value for Arc<str> {
    fn put(&self, values: &mut Columns) {
        values.text(self);
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
    rows: impl Iterator<Item = (&'r Cell, &'r R)>,
) -> Result<(), StoreError> {
    let file = File::create(path).map_err(super::at(path))?;
    write_to::<R>(file, rows).map_err(|source| StoreError::Parquet {
        path: path.to_owned(),
        source,
    })
}

fn write_to<'r, R: Row + 'r>(
    file: impl Write + Send,
    mut rows: impl Iterator<Item = (&'r Cell, &'r R)>,
) -> Result<(), ParquetError> {
    let columns = all_columns::<R>();
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(R::TABLE)
        .with_fields(fields)
        .build()?;
    let described: Vec<serde_json::Value> = columns
        .iter()
        .map(|c| serde_json::json!({"name": c.name, "unit": c.unit, "description": c.doc}))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("swell {}", crate::VERSION))
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "swell.columns".to_owned(),
            serde_json::Value::from(described).to_string(),
        )]))
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    loop {
        let mut batch = Columns::new(&columns);
        let mut n = 0;
        for (cell, row) in rows.by_ref().take(GROUP) {
            batch.text(&cell.foreground);
            batch.text(&cell.background);
            cell.replication.put(&mut batch);
            row.put(&mut batch);
            n += 1;
        }
        if n == 0 {
            break;
        }
        let mut group = writer.next_row_group()?;
        for (column, values) in columns.iter().zip(&batch.columns) {
            write_column(&mut group, column, values)?;
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let unsigned = |bits| Some(LogicalType::integer(bits, false));
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::U32 => (Physical::INT32, unsigned(32)),
        Kind::U64 => (Physical::INT64, unsigned(64)),
        Kind::F64 | Kind::OptionalF64 => (Physical::DOUBLE, None),
    };
    let repetition = match column.kind {
        Kind::OptionalF64 => Repetition::OPTIONAL,
        _ => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
        .map(Arc::new)
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    values: &Values,
) -> Result<(), ParquetError> {
    let mut writer = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("a column more than the schema has".into()))?;
    match values {
        Values::Text(v) => {
            writer.typed::<ByteArrayType>().write_batch(v, None, None)?;
        }
        Values::U32(v) => {
            writer.typed::<Int32Type>().write_batch(v, None, None)?;
        }
        Values::U64(v) => {
            writer.typed::<Int64Type>().write_batch(v, None, None)?;
        }
        Values::F64(v) if column.kind == Kind::OptionalF64 => {
            let levels: Vec<i16> = v.iter().map(|x| i16::from(!x.is_nan())).collect();
            let present: Vec<f64> = v.iter().copied().filter(|x| !x.is_nan()).collect();
            writer
                .typed::<DoubleType>()
                .write_batch(&present, Some(&levels), None)?;
        }
        Values::F64(v) => {
            writer.typed::<DoubleType>().write_batch(v, None, None)?;
        }
    }
    writer.close()
}

/// Reads a table, row by row in its order.
pub(super) fn read<R: Row>(path: &Path, mut each: impl FnMut(Key, R)) -> Result<(), StoreError> {
    let parquet = |source| StoreError::Parquet {
        path: path.to_owned(),
        source,
    };
    let table = |reason: String| StoreError::Table {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(super::at(path))?;
    let reader = SerializedFileReader::new(file).map_err(parquet)?;
    let columns = all_columns::<R>();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut places = Vec::with_capacity(columns.len());
    for column in &columns {
        let place = (0..schema.num_columns()).find(|&i| {
            let found = schema.column(i);
            found.name() == column.name
                && field(column).is_ok_and(|f| f.get_physical_type() == found.physical_type())
                && found.max_rep_level() == 0
        });
        places.push(place.ok_or_else(|| {
            table(format!(
                "no column `{}` of type {}",
                column.name,
                column.kind.name()
            ))
        })?);
    }
    for g in 0..reader.num_row_groups() {
        let group = reader.get_row_group(g).map_err(parquet)?;
        let n = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut batch = Columns::new(&columns);
        for (values, &place) in batch.columns.iter_mut().zip(&places) {
            let column = group.get_column_reader(place).map_err(parquet)?;
            let optional = schema.column(place).max_def_level() > 0;
            let got = match values {
                Values::Text(v) => fill::<ByteArrayType>(column, n, optional, v, ByteArray::new()),
                Values::U32(v) => fill::<Int32Type>(column, n, optional, v, 0),
                Values::U64(v) => fill::<Int64Type>(column, n, optional, v, 0),
                Values::F64(v) => fill::<DoubleType>(column, n, optional, v, f64::NAN),
            }
            .map_err(parquet)?;
            if got != n {
                return Err(table(format!("a column ends after {got} of {n} rows")));
            }
        }
        for row in 0..n {
            batch.row = row;
            batch.at = 0;
            let key = Key {
                foreground: batch.take_text(),
                background: batch.take_text(),
                replication: u32::take(&mut batch).unwrap_or_default(),
            };
            let value = R::take(&mut batch)
                .ok_or_else(|| table(format!("row {row} holds a word that means nothing here")))?;
            each(key, value);
        }
    }
    Ok(())
}

/// Reads `n` rows of a column, with `null` where a row has no value. Returns the number of rows read.
fn fill<T: DataType>(
    column: ColumnReader,
    n: usize,
    optional: bool,
    out: &mut Vec<T::T>,
    null: T::T,
) -> Result<usize, ParquetError> {
    let mut reader = get_typed_column_reader::<T>(column);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut rows = 0;
    while rows < n {
        let wanted = if optional { Some(&mut levels) } else { None };
        let (records, _, _) = reader.read_records(n - rows, wanted, None, &mut values)?;
        if records == 0 {
            break;
        }
        rows += records;
    }
    if optional {
        let mut present = values.into_iter();
        out.extend(levels.iter().map(|&level| match level {
            0 => null.clone(),
            _ => present.next().unwrap_or_else(|| null.clone()),
        }));
    } else {
        *out = values;
    }
    Ok(out.len())
}
