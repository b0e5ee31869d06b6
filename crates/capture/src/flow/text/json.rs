//! Flow records as JSON objects: Zeek's `conn.log`, Suricata's EVE.

use serde_json::{Map, Value};

use super::columns::{Column, Row, column};
use super::wrong::Wrong;
use crate::flow::FlowSkip;

/// Reads an object. Members have the names of table columns. Members of `flow` and `tcp` have that name and a dot in
/// front, as in Suricata's events.
pub(super) fn read(line: &[u8], row: &mut Row) -> Result<(), Wrong> {
    let object: Map<String, Value> = serde_json::from_slice(line).map_err(|_| FlowSkip::BadRow)?;
    // Only those Suricata events count that report the end of a flow, because they have its final counters.
    if let Some(event) = object.get("event_type")
        && event != "flow"
    {
        return Err(FlowSkip::OtherKind.into());
    }
    let at = |name: &str| {
        let column = Some(name.into());
        move |reason| Wrong { reason, column }
    };
    for (name, value) in &object {
        match value {
            Value::Object(inner) if name == "flow" || name == "tcp" => {
                for (part, part_value) in inner {
                    let hex = part.starts_with("tcp_flags");
                    let whole = format!("{name}.{part}");
                    put(row, column(&whole), part_value, hex).map_err(at(&whole))?;
                }
            }
            _ => put(row, column(name), value, false).map_err(at(name))?,
        }
    }
    Ok(())
}

fn put(row: &mut Row, column: Column, value: &Value, hex: bool) -> Result<(), FlowSkip> {
    if column == Column::Ignore {
        return Ok(());
    }
    match value {
        Value::Null => Ok(()),
        Value::String(text) if hex => row.put(column, &format!("0x{text}")),
        Value::String(text) => row.put(column, text),
        Value::Number(number) => row.put(column, &number.to_string()),
        _ => Err(FlowSkip::BadRow),
    }
}
