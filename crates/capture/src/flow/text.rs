//! Flow records as text: tables with a header line (Zeek's `conn.log`, Argus, `nfdump -o csv`, our own CSV), and one
//! JSON object per line (Zeek, Suricata EVE). `docs/flow-records.md` lists the columns.

mod columns;
mod json;
mod moment;
mod wrong;

use super::behind::Behind;
use super::error::FlowProblem;
use super::{BadRow, FlowCounts, FlowRecord, FlowSkip};
use crate::error::Problem;
use crate::window::Window;
use columns::{Column, Row};
use wrong::Wrong;

/// Separators between the values of a table.
const SEPARATORS: [u8; 2] = [b'\t', b','];

/// Maximum length of a line.
const MOST: usize = 1 << 20;

/// The layout of the lines.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// Values with separators, in the order of `columns`, which is empty before the names have been read.
    Table { separator: u8, columns: Vec<Column> },
    /// JSON objects.
    Json,
}

/// Whether a file begins like one of these formats.
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

/// Whether a file begins with the header line of a table of flows.
pub(crate) fn is_table_of_flows(head: &[u8]) -> bool {
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
    let are_flows = |&separator: &u8| columns::are_flows(&columns::named(first, separator));
    SEPARATORS.iter().any(are_flows) || {
        // Argus's `ra` pads columns with blanks if no separator was given.
        let text = String::from_utf8_lossy(first);
        let names = text.split_whitespace().map(columns::column);
        columns::are_flows(&names.collect::<Vec<_>>())
    }
}

/// What a table lacks whose first line names columns of flows, but not enough of them, or between other separators.
pub(crate) fn lacks(head: &[u8]) -> Option<&'static str> {
    let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
    if columns::suffices(&columns::named(first, b';')) {
        return Some("a table of flows with semicolons; separate the values by commas or tabs");
    }
    let each = SEPARATORS.into_iter().chain([b';']);
    each.map(|separator| columns::named(first, separator))
        .find_map(|names| columns::missing(&names))
}

/// Converts lines of text to records.
#[derive(Debug)]
pub(crate) struct Text {
    layout: Layout,
    /// Whether the header line, which [`looks_like`] has parsed, has not been consumed yet.
    names_ahead: bool,
    /// Number of the current line, from 1.
    number: u64,
    behind: Behind,
}

impl Text {
    pub(crate) fn new(layout: Layout) -> Text {
        let names_ahead = matches!(&layout, Layout::Table { columns, .. } if !columns.is_empty());
        Text {
            layout,
            names_ahead,
            number: 0,
            behind: Behind::default(),
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
                // The last line, without a line end. In a damaged stream it may lack digits, and look whole.
                let (line, len) = (bytes.to_vec(), bytes.len());
                if window.failed() {
                    return Ok(false);
                }
                break (line, len);
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
        self.number += 1;
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
            Err(Wrong { reason, column }) => {
                if reason == FlowSkip::BadRow {
                    counts.bad_row.get_or_insert(BadRow {
                        line: self.number,
                        column,
                    });
                }
                counts.data_records += u64::from(matches!(
                    reason,
                    FlowSkip::NoAddresses | FlowSkip::NoCounters
                ));
                counts.skip(reason, at);
            }
        }
        Ok(true)
    }

    /// The record of a line; `None` for a comment or header line.
    fn line(&mut self, line: &[u8], counts: &mut FlowCounts) -> Result<Option<FlowRecord>, Wrong> {
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
                    return Err(FlowSkip::BadRow.into());
                }
                let text = std::str::from_utf8(line).map_err(|_| FlowSkip::BadRow)?;
                let mut values = text.split(char::from(*separator));
                for (column, number) in columns.iter().zip(1u64..) {
                    let value = values.next().ok_or(FlowSkip::BadRow);
                    let put = value.and_then(|it| row.put(*column, it.trim()));
                    put.map_err(|reason| Wrong {
                        reason,
                        column: Some(number.to_string().into()),
                    })?;
                }
            }
        }
        let (divided, out) = (row.lacks_packets_of_sides(), row.has_out_counters());
        let mut record = row.finish()?;
        if out {
            self.behind.judge(&mut record, counts);
        }
        counts.divided += u64::from(divided && record.reverse.is_some());
        Ok(Some(record))
    }
}
