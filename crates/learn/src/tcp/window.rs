//! Decides whether a receive window is a cap on the transfer, or just what the transfer needed.
//!
//! Receivers with buffer auto-tuning (Linux, Windows since Vista, macOS) offer what a transfer needs, a
//! multiple of what arrived in the last RTT (W. Feng et al., "Automatic flow-control adaptation for
//! enhancing network performance in computational grids", J. Grid Computing 1, 2003). So the largest
//! window of a short transfer is not a cap. It is a cap if a window's worth of data arrived in one RTT and
//! the receiver did not increase the window afterwards.
//!
//! A window may also hold back a transfer that fills a line: all that it permits waits in the line's queue then, and less
//! arrives in one RTT without that queue. The data under way tell it.

/// Share of a window that must arrive in one RTT. A receiver with auto-tuning offers twice of what
/// arrived.
const SHARE: f64 = 0.75;

/// The largest window scale (RFC 7323 section 2.3).
pub(super) const MAX_SHIFT: u8 = 14;

/// The windows that one end offered, and whether the largest is a cap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// The largest, bytes; 0 if unknown.
    pub(super) largest: u32,
    /// The largest that the window scale allows, bytes.
    potential: u32,
    /// Start time and start offset of the current RTT of data to this end.
    round: Option<(u64, u64)>,
    /// Offset at the end of an RTT in which a window's worth arrived, if the largest window has not grown
    /// since.
    filled: Option<u64>,
    bound: bool,
    /// The same for a window's worth under way at once.
    used_up: Option<u64>,
    held: bool,
}

impl Window {
    /// This end offers `window` bytes (scaled by `shift`) and has acknowledged everything before `acked`.
    pub(super) fn offered(&mut self, window: u16, shift: u8, acked: u64) {
        let shift = shift.min(MAX_SHIFT);
        let bytes = u32::from(window) << shift;
        self.potential = 0xffff << shift;
        if bytes > self.largest {
            self.largest = bytes;
            (self.filled, self.used_up) = (None, None);
            (self.bound, self.held) = (false, false);
            return;
        }
        // The receiver has had time to enlarge the window.
        let time = u64::from(self.largest) / 4;
        let kept = |since: Option<u64>| since.is_some_and(|end| acked > end.saturating_add(time));
        self.bound |= kept(self.filled);
        self.held |= kept(self.used_up);
    }

    /// Records data up to offset `end` to this end, which had told that it got those up to `got`; `round_trip` is the
    /// end-to-end RTT in nanoseconds.
    pub(super) fn data(&mut self, at: u64, [got, end]: [u64; 2], round_trip: u64) {
        let under_way = end.saturating_sub(got) as f64;
        if self.largest > 0 && under_way >= SHARE * f64::from(self.largest) {
            self.used_up.get_or_insert(end);
        }
        let (since, from) = *self.round.get_or_insert((at, end));
        if at.saturating_sub(since) < round_trip {
            return;
        }
        let came = end.saturating_sub(from) as f64;
        if self.filled.is_none() && self.largest > 0 && came >= SHARE * f64::from(self.largest) {
            self.filled = Some(end);
        }
        self.round = Some((at, end));
    }

    /// Whether it limited the transfer: what was sent arrived, or was under way.
    pub(crate) fn held(&self) -> bool {
        self.bound || self.held
    }

    /// The cap of transfers to this end, bytes. This is the largest window if it limited the transfer,
    /// else the most that could have been offered. 0 if unknown.
    pub(crate) fn cap(&self) -> u32 {
        match (self.largest, self.bound) {
            (0, _) => 0,
            (largest, true) => largest,
            (_, false) => self.potential,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: u64 = 40_000_000;

    /// The cap of a transfer in which `per_round(i)` bytes arrive in RTT `i`, in ten pieces. The receiver
    /// offers `offers(received)`.
    fn cap(
        rounds: u64,
        per_round: impl Fn(u64) -> u64,
        shift: u8,
        mut offers: impl FnMut(u64) -> u32,
    ) -> u32 {
        let mut window = Window::default();
        let mut end = 1;
        for i in 0..rounds {
            for piece in 0..10 {
                end += per_round(i) / 10;
                window.data(i * RTT + piece * RTT / 10, [end, end], RTT);
                let offer = offers(end) >> shift;
                window.offered(u16::try_from(offer).unwrap(), shift, end);
            }
        }
        window.cap()
    }

    #[test]
    fn a_window_that_held_a_transfer_back_is_a_cap() {
        // A window per RTT, ten times.
        assert_eq!(cap(10, |_| 64_000, 2, |_| 64_000), 64_000);
        // A slower transfer does not show how far the window would have grown.
        assert_eq!(cap(10, |_| 30_000, 2, |_| 64_000), 0xffff << 2);
        assert_eq!(cap(10, |_| 30_000, 0, |_| 64_000), 0xffff);
        // The same holds for a transfer that ends when the window has been filled once.
        assert_eq!(cap(1, |_| 64_000, 2, |_| 64_000), 0xffff << 2);
    }

    #[test]
    fn a_window_that_grows_with_the_transfer_is_none() {
        let rounds = |i: u64| 14_000 << i.min(5);
        let tuned = |end: u64| 65_536 + 3 * end as u32;
        assert_eq!(cap(8, rounds, 7, tuned), 0xffff << 7);
        // Until it reaches the limit of the buffer.
        let limited = |end: u64| tuned(end).min(400_000);
        let fast = |_| 380_000;
        assert_eq!(cap(8, fast, 7, limited), 400_000 >> 7 << 7);
    }

    /// A line carries a tenth of a window in an RTT. The sender keeps `under_way` bytes under way, so most of them wait.
    #[test]
    fn a_window_that_waits_in_a_queue_held_a_transfer_back() {
        for (under_way, most, held) in [
            (64_000, 64_000, true),
            (40_000, 64_000, false),
            // It grows with what comes.
            (64_000, u32::MAX, false),
        ] {
            let mut window = Window::default();
            for i in 1..300u64 {
                let got = i * 640;
                let offer = (64_000 + 2 * i as u32 * 640).min(most) >> 3;
                window.offered(u16::try_from(offer).unwrap(), 3, got);
                window.data(i * RTT / 10, [got, got + under_way], RTT);
            }
            assert_eq!(window.held(), held, "{under_way} of {most}");
        }
    }

    #[test]
    fn windows_shrink_while_nobody_reads_and_say_nothing_then() {
        let busy = |end: u64| {
            if end.is_multiple_of(3) {
                20_000
            } else {
                64_000
            }
        };
        assert_eq!(cap(10, |_| 63_000, 1, busy), 64_000);
        assert_eq!(Window::default().cap(), 0);
    }
}
