//! Flow records or packets?

use super::{FlowFormat, FlowReader, FlowSkip};

/// Bytes of a file's beginning that are enough for [`holds_flow_records`].
pub const ENOUGH_TO_TELL: usize = 1 << 20;

/// Whether a file that begins with `head` is one of flow records: export messages, a table, a file of
/// nfdump's, or a capture in whose beginning most packets are export messages. A capture of other
/// packets is none, nor is what is not read at all. [`ENOUGH_TO_TELL`] bytes are enough, as they lie in
/// the file, compressed or not.
pub fn holds_flow_records(head: &[u8]) -> bool {
    let Ok(mut reader) = FlowReader::new(head) else {
        return false;
    };
    if !matches!(reader.format(), FlowFormat::Capture(_)) {
        return true;
    }
    // The head is cut at a fixed length: an incomplete end is not damage.
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
