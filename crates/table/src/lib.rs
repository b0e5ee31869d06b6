//! Tables in Parquet files, written and read row by row without Arrow.
//!
//! Each column has a name, a type, a unit and a description, which the file carries as JSON under the key
//! `swell.columns`. Equal rows give equal bytes.
//!
//! ```
//! use swell_table::{Column, Kind, read, write};
//!
//! let columns = [
//!     Column { name: "link", kind: Kind::Text, unit: "", doc: "Name of the link." },
//!     Column { name: "delay_s", kind: Kind::OptionalF64, unit: "s", doc: "One-way delay." },
//! ];
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("delays.parquet");
//! let mut rows = [("up", 0.01), ("down", f64::NAN)].into_iter();
//! write(&path, "delays", "example", &columns, &mut |row| {
//!     let Some((link, delay)) = rows.next() else { return false };
//!     row.put_text(link);
//!     row.put_f64(delay);
//!     true
//! })?;
//! let mut links = Vec::new();
//! read(&path, &columns, &mut |row| {
//!     links.push((row.take_text(), row.take_f64().is_nan()));
//!     true
//! })?;
//! assert_eq!(links, [("up".to_owned(), false), ("down".to_owned(), true)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
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

/// A table that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A file system error.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is not Parquet, is damaged, or cannot be written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        source: ParquetError,
    },
    /// The table lacks a column, or a cell of it holds something unknown.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        reason: String,
    },
}

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

/// The values of one column. Parquet stores unsigned integers in signed types with the same bits.
enum Values {
    Text(Vec<ByteArray>),
    U32(Vec<i32>),
    U64(Vec<i64>),
    F64(Vec<f64>),
}

/// A batch of rows, by column. Values go in and come out row by row, in the order of the columns.
pub struct Columns {
    columns: Vec<Values>,
    at: usize,
    row: usize,
}

/// Defines how values of a number type enter and leave a column.
macro_rules! numbers {
    ($($put:ident, $take:ident: $number:ty as $kept:ty => $values:ident, $name:literal;)*) => {$(
        #[doc = concat!("Appends ", $name, " to the next column.")]
        ///
        /// # Panics
        /// If that column has another type.
        pub fn $put(&mut self, value: $number) {
            match self.next() {
                Values::$values(column) => column.push(value as $kept),
                _ => wrong_type(),
            }
        }

        #[doc = concat!("The current row's value in the next column, ", $name, ".")]
        ///
        /// # Panics
        /// If that column has another type.
        pub fn $take(&mut self) -> $number {
            let row = self.row;
            match self.next() {
                Values::$values(column) => column[row] as $number,
                _ => wrong_type(),
            }
        }
    )*};
}

/// Ends a row whose values are not in the order of its columns, which is a bug of the caller.
fn wrong_type() -> ! {
    unreachable!("a row has its values in the order of its columns")
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

    /// Appends text to the next column.
    ///
    /// # Panics
    /// If that column has another type.
    pub fn put_text(&mut self, value: &str) {
        match self.next() {
            Values::Text(column) => column.push(value.into()),
            _ => wrong_type(),
        }
    }

    /// The current row's text in the next column.
    ///
    /// # Panics
    /// If that column has another type.
    pub fn take_text(&mut self) -> String {
        let row = self.row;
        match self.next() {
            Values::Text(column) => String::from_utf8_lossy(column[row].data()).into_owned(),
            _ => wrong_type(),
        }
    }

    numbers! {
        put_u32, take_u32: u32 as i32 => U32, "an integer of 32 bits";
        put_u64, take_u64: u64 as i64 => U64, "an integer of 64 bits";
        put_f64, take_f64: f64 as f64 => F64, "a double";
    }
}

/// Writes the table `name`. `next` puts a row and returns true, or returns false after the last one.
///
/// # Errors
/// If the file cannot be written.
pub fn write(
    path: &Path,
    name: &str,
    created_by: &str,
    columns: &[Column],
    next: &mut dyn FnMut(&mut Columns) -> bool,
) -> Result<(), TableError> {
    let file = File::create(path).map_err(|source| TableError::Io {
        path: path.to_owned(),
        source,
    })?;
    write_to(file, name, created_by, columns, next).map_err(|source| TableError::Parquet {
        path: path.to_owned(),
        source,
    })
}

fn write_to(
    file: File,
    name: &str,
    created_by: &str,
    columns: &[Column],
    next: &mut dyn FnMut(&mut Columns) -> bool,
) -> Result<(), ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let described: Vec<serde_json::Value> = columns
        .iter()
        .map(|c| serde_json::json!({"name": c.name, "unit": c.unit, "description": c.doc}))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(created_by.to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(
            "swell.columns".to_owned(),
            serde_json::Value::from(described).to_string(),
        )]))
        .build();
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    loop {
        let mut batch = Columns::new(columns);
        let mut n = 0;
        while n < GROUP && next(&mut batch) {
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
    // A table is on the disk before anything says that it is there.
    writer.into_inner()?.sync_data()?;
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

/// Reads a table with at least these `columns`, row by row in its order. `each` takes the values of a row, and returns
/// false if one of them means nothing.
///
/// # Errors
/// If the file cannot be read, lacks a column, or `each` returns false.
pub fn read(
    path: &Path,
    columns: &[Column],
    each: &mut dyn FnMut(&mut Columns) -> bool,
) -> Result<(), TableError> {
    let parquet = |source| TableError::Parquet {
        path: path.to_owned(),
        source,
    };
    let content = |reason: String| TableError::Content {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|source| TableError::Io {
        path: path.to_owned(),
        source,
    })?;
    let reader = SerializedFileReader::new(file).map_err(parquet)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut places = Vec::with_capacity(columns.len());
    for column in columns {
        let place = (0..schema.num_columns()).find(|&i| {
            let found = schema.column(i);
            found.name() == column.name
                && field(column).is_ok_and(|f| f.get_physical_type() == found.physical_type())
                && found.max_rep_level() == 0
        });
        places.push(place.ok_or_else(|| {
            content(format!(
                "no column `{}` of type {}",
                column.name,
                column.kind.name()
            ))
        })?);
    }
    let mut before = 0;
    for g in 0..reader.num_row_groups() {
        let group = reader.get_row_group(g).map_err(parquet)?;
        let n = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut batch = Columns::new(columns);
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
                return Err(content(format!("a column ends after {got} of {n} rows")));
            }
        }
        for row in 0..n {
            batch.row = row;
            batch.at = 0;
            if !each(&mut batch) {
                return Err(content(format!(
                    "row {} holds a word that means nothing here",
                    before + row
                )));
            }
        }
        before += n;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A row is counted from the start of the file, not of its row group.
    #[test]
    fn an_error_names_the_row_of_the_file() {
        let columns = [Column {
            name: "n",
            kind: Kind::U32,
            unit: "",
            doc: "",
        }];
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("n.parquet");
        let wrong = GROUP as u32 + 5;
        let mut numbers = 0..wrong + 3;
        let mut put = |row: &mut Columns| numbers.next().map(|n| row.put_u32(n)).is_some();
        write(&path, "n", "test", &columns, &mut put).expect("a table");
        let found = read(&path, &columns, &mut |row| row.take_u32() != wrong);
        let message = found.expect_err("a row is wrong").to_string();
        assert!(message.contains(&format!("row {wrong} ")), "{message}");
    }
}
