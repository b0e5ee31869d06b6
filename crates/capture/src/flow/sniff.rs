//! Distinguishes files of flow records from captures of packets.

use super::{FlowFormat, FlowReader, FlowSkip};

/// Number of bytes from a file's beginning that [`holds_flow_records`] needs.
pub const ENOUGH_TO_TELL: usize = 1 << 20;

/// Whether a file that begins with `head` contains flow records: export messages, a table, an nfdump file, or a
/// capture in whose beginning most packets are export messages. False for captures of other packets, and for unknown
/// formats. `head` should have [`ENOUGH_TO_TELL`] bytes, in the form in which they are in the file, compressed or
/// not.
pub fn holds_flow_records(head: &[u8]) -> bool {
    let Ok(mut reader) = FlowReader::new(head) else {
        return false;
    };
    if !matches!(reader.format(), FlowFormat::Capture(_)) {
        return true;
    }
    // `head` is cut at a fixed length, so an incomplete end is not damage.
    while reader
        .next_records()
        .is_ok_and(|records| !records.is_empty())
    {}
    let counts = reader.counts();
    counts.messages_total() > counts.skipped(FlowSkip::NotAnExport).times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_garbage() {
        assert!(holds_flow_records(
            b"start,src,dst,bytes\n1,10.0.0.1,10.0.0.2,50\n"
        ));
        assert!(!holds_flow_records(b""));
        assert!(!holds_flow_records(b"no such thing\n"));
    }
}
