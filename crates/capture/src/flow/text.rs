//! Flow records as text: tables with a line of column names (Zeek's `conn.log`, Argus, `nfdump -o
//! csv`, our own CSV) and a JSON object per line (Zeek, Suricata EVE). `docs/flow-records.md` has
//! the columns.

mod columns;
mod json;
mod moment;

use super::error::FlowProblem;
use super::{FlowCounts, FlowRecord, FlowSkip};
use crate::error::Problem;
use crate::window::Window;
use columns::{Column, Row};

/// What stands between the values of a table.
const SEPARATORS: [u8; 2] = [b'\t', b','];

/// No line is longer.
const MOST: usize = 1 << 20;

/// What the lines are.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// Values between separators, in this order. Before the names have been read there are none.
    Table { separator: u8, columns: Vec<Column> },
    /// Objects.
    Json,
}

/// Whether a file begins like one of these.
pub(crate) fn looks_like(head: &[u8]) -> Option<Layout> {
    let first = head.split(|b| *b == b'\n').next()?;
    if first.starts_with(b"#separator") {
        return Some(Layout::Table {
            separator: b'\t',
            columns: Vec::new(),
        });
    }
    if first.starts_with(b"{\"") {
        let known = ["\"id.orig_h\"", "\"src_ip\"", "\"event_type\""];
        let text = String::from_utf8_lossy(head);
        return known
            .iter()
            .any(|k| text.contains(k))
            .then_some(Layout::Json);
    }
    for separator in SEPARATORS {
        let columns = columns::named(first, separator);
        if columns::suffices(&columns) {
            return Some(Layout::Table { separator, columns });
        }
    }
    None
}

/// Whether a file begins with the column names of a table of flows.
pub(crate) fn is_table_of_flows(head: &[u8]) -> bool {
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let are_flows = |&separator: &u8| columns::are_flows(&columns::named(first, separator));
    SEPARATORS.iter().any(are_flows) || {
        // `ra` pads columns with blanks where it is given no separator.
        let text = String::from_utf8_lossy(first);
        let names = text.split_whitespace().map(columns::column);
        columns::are_flows(&names.collect::<Vec<_>>())
    }
}

/// Lines of text on their way to records.
#[derive(Debug)]
pub(crate) struct Text {
    layout: Layout,
    /// Whether the line of names, which [`looks_like`] has read, is still ahead.
    names_ahead: bool,
}

impl Text {
    pub(crate) fn new(layout: Layout) -> Text {
        let names_ahead = matches!(&layout, Layout::Table { columns, .. } if !columns.is_empty());
        Text {
            layout,
            names_ahead,
        }
    }

    /// The name of the format.
    pub(crate) fn name(&self) -> &'static str {
        match self.layout {
            Layout::Json => "JSON lines",
            Layout::Table {
                separator: b'\t', ..
            } => "tab-separated text",
            Layout::Table { .. } => "CSV",
        }
    }

    /// Reads the next line; false at the end.
    pub(crate) fn next(
        &mut self,
        window: &mut Window<'_>,
        counts: &mut FlowCounts,
        out: &mut Vec<FlowRecord>,
    ) -> Result<bool, FlowProblem> {
        let at = window.offset();
        let mut wanted = 4096;
        let (line, len) = loop {
            let bytes = window.peek(wanted);
            if bytes.is_empty() {
                return Ok(false);
            }
            if let Some(end) = bytes.iter().position(|b| *b == b'\n') {
                break (bytes[..end].to_vec(), end + 1);
            }
            if bytes.len() < wanted {
                // The last line, without its end.
                break (bytes.to_vec(), bytes.len());
            }
            if wanted >= MOST {
                return Err(FlowProblem::File(Problem::CutShort {
                    what: "line, which is none",
                    needed: MOST as u64,
                    left: bytes.len() as u64,
                }));
            }
            wanted = (bytes.len() + 1).max(2 * wanted).min(MOST);
        };
        window.consume(len);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if std::mem::take(&mut self.names_ahead) || line.is_empty() {
            return Ok(true);
        }
        match self.line(line, counts) {
            Ok(Some(mut record)) => {
                if record.first > record.last {
                    counts.backward += 1;
                    record.first = record.last;
                }
                counts.record(&record);
                counts.sampled(record.sampling, 1);
                out.push(record);
            }
            Ok(None) => {}
            Err(reason) => {
                counts.data_records += u64::from(matches!(
                    reason,
                    FlowSkip::NoAddresses | FlowSkip::NoCounters
                ));
                counts.skip(reason, at);
            }
        }
        Ok(true)
    }

    /// The record of a line; none in a line of comment or names.
    fn line(
        &mut self,
        line: &[u8],
        counts: &mut FlowCounts,
    ) -> Result<Option<FlowRecord>, FlowSkip> {
        let mut row = Row::default();
        match &mut self.layout {
            Layout::Json => json::read(line, &mut row)?,
            Layout::Table { separator, columns } => {
                if let Some(comment) = line.strip_prefix(b"#") {
                    if let Some(names) = comment.strip_prefix(b"fields\t") {
                        *columns = columns::named(names, b'\t');
                    }
                    return Ok(None);
                }
                if columns.is_empty() {
                    return Err(FlowSkip::BadRow);
                }
                let text = std::str::from_utf8(line).map_err(|_| FlowSkip::BadRow)?;
                let mut values = text.split(char::from(*separator));
                for column in &*columns {
                    let value = values.next().ok_or(FlowSkip::BadRow)?.trim();
                    row.put(*column, value)?;
                }
            }
        }
        let divided = row.lacks_packets_of_sides();
        let record = row.finish()?;
        counts.divided += u64::from(divided && record.reverse.is_some());
        Ok(Some(record))
    }
}
