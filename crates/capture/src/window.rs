//! A buffer that slides over a stream of bytes.

use std::io::{self, Read};

/// Size of the buffer. 256 KiB fit into a second-level cache; larger buffers were measured to be slower.
pub(crate) const CHUNK: usize = 256 * 1024;

/// A stream whose bytes can be inspected before they are consumed. The buffer grows beyond one chunk only for a
/// record that needs it, and only as its bytes actually arrive. So a false length causes no allocation.
pub(crate) struct Window<'a> {
    source: Box<dyn Read + Send + 'a>,
    step: usize,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position of `buffer[0]` in the stream.
    base: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl<'a> Window<'a> {
    /// `step` is the most that one read requests.
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, step: usize) -> Window<'a> {
        Window {
            source,
            step,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            base: 0,
            ended: false,
            failure: None,
        }
    }

    /// All buffered bytes: at least `n`, unless the stream ends (or fails) before.
    #[inline]
    pub(crate) fn peek(&mut self, n: usize) -> &[u8] {
        if self.end - self.start < n {
            self.fill(n);
        }
        &self.buffer[self.start..self.end]
    }

    /// Consumes `n` bytes, at most as many as were last returned by `peek`.
    #[inline]
    pub(crate) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start, "consumed more than was seen");
        self.start = (self.start + n).min(self.end);
    }

    /// Consumes `to` bytes, and returns those from `from` on.
    #[inline]
    pub(crate) fn take(&mut self, from: usize, to: usize) -> &[u8] {
        let at = self.start;
        self.consume(to);
        &self.buffer[(at + from).min(self.start)..self.start]
    }

    /// Number of bytes consumed so far.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Whether an error ended the stream.
    pub(crate) fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The error that ended the stream, if any. It is returned only once.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    #[cold]
    fn fill(&mut self, n: usize) {
        self.buffer.copy_within(self.start..self.end, 0);
        self.base += self.start as u64;
        self.end -= self.start;
        self.start = 0;
        while self.end < n && !self.ended {
            if self.end == self.buffer.len() {
                self.buffer.resize(n.min(2 * self.buffer.len()), 0);
            }
            let to = self.buffer.len().min(self.end + self.step);
            match self.source.read(&mut self.buffer[self.end..to]) {
                Ok(0) => self.ended = true,
                // Must not panic if a reader claims more bytes than its buffer holds.
                Ok(read) => self.end = (self.end + read).min(to),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.ended = true;
                    self.failure = Some(e);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one more byte in each read, then fails.
    struct Drip {
        next: u8,
        fail_at: u8,
    }

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.next == self.fail_at {
                return Err(io::Error::other("broken pipe"));
            }
            buffer[0] = self.next;
            self.next += 1;
            Ok(1)
        }
    }

    #[test]
    fn bytes_come_in_order_however_they_arrive() {
        let mut w = Window::new(
            Box::new(Drip {
                next: 0,
                fail_at: 9,
            }),
            CHUNK,
        );
        assert_eq!(w.peek(3), [0, 1, 2]);
        w.consume(2);
        assert_eq!(w.offset(), 2);
        assert_eq!(w.peek(4), [2, 3, 4, 5]);
        w.consume(4);
        assert_eq!(w.peek(100), [6, 7, 8]);
        assert_eq!(
            w.take_failure().map(|e| e.to_string()).as_deref(),
            Some("broken pipe")
        );
        assert!(w.take_failure().is_none());
        assert_eq!(w.offset(), 6);
    }

    #[test]
    fn a_large_demand_on_a_short_stream_allocates_nothing() {
        let mut w = Window::new(Box::new(&[7u8; 100][..]), CHUNK);
        assert_eq!(w.peek(16 << 20).len(), 100);
        assert_eq!(w.buffer.len(), CHUNK);
    }

    #[test]
    fn a_record_larger_than_a_chunk_is_seen_whole() {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        let mut w = Window::new(Box::new(&bytes[..]), 1000);
        w.peek(10);
        w.consume(10);
        assert_eq!(w.peek(2_500_000)[..2_500_000], bytes[10..2_500_010]);
        w.consume(2_500_000);
        assert_eq!(w.peek(usize::MAX / 2), &bytes[2_500_010..]);
    }
}
