//! Estimates how many bytes of a TCP packet are headers, from records that count only bytes and packets.
//!
//! Timestamps take 12 bytes of every packet of a connection, or of none (RFC 7323 section 3.2, appendix
//! A). That is 30 % of the headers of an ACK, and more than the payload of many small transfers. The
//! evidence in a record:
//!
//! - If the mean packet is smaller than headers with timestamps, the connection has none.
//! - Pure ACKs of exactly that size have timestamps.
//! - A single SYN/ACK large enough for timestamps beside the other options (20 bytes on most systems) has
//!   them.
//! - Several packets in a direction that are hardly larger are likely to have them, if other connections
//!   have.
//!
//! A connection without evidence is taken to be like those with evidence: like the majority if most of
//! them agree, else with their mean. The other options of a SYN are estimated by the mean of the single
//! SYNs.

use super::super::record::{ACK, Direction, FIN, PSH, RST, SYN};

/// Options of a segment with timestamps, padded (RFC 7323 appendix A).
pub(super) const TIMESTAMPS: u64 = 12;
/// Options of a SYN that offers them: those of Linux (`tcp_syn_options`).
const SYN_OPTIONS: u64 = 20;
/// In directions with at least `MANY` packets, and less than `HARDLY` extra bytes per packet, most packets
/// are ACKs.
const MANY: u64 = 4;
const HARDLY: u64 = 8;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamps {
    #[default]
    Unknown,
    Likely,
    Yes,
    /// Certain once it has been seen.
    No,
}

/// Share above which the connections agree, or below whose complement nearly none do; the others are
/// errors.
const MOST: f64 = 0.75;

/// The evidence so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Headers {
    with: u64,
    without: u64,
    /// Single SYNs without room for timestamps, and the options of all of them together.
    syns: u64,
    syn_options: u64,
}

impl Headers {
    /// Adds the evidence of a direction's record about its connection, of which `known` is known. `header`
    /// is the size of headers without options; zero if bytes are of the payload alone.
    pub(super) fn hear(&mut self, piece: &Direction, header: u32, known: Stamps) -> Stamps {
        let said = said_by(piece, header);
        let beyond = piece.payload(header);
        if header > 0 && piece.packets == 1 && piece.has(SYN) && beyond < SYN_OPTIONS {
            self.syns += 1;
            self.syn_options += beyond;
        }
        match (known, said) {
            (Stamps::No, _) | (_, Stamps::Unknown) | (Stamps::Yes, Stamps::Likely) => return known,
            (_, Stamps::Yes | Stamps::Likely) => self.with += 1,
            (_, Stamps::No) => self.without += 1,
        }
        said
    }

    /// Payload of packets with `beyond` bytes beyond their headers without options; zero if these bytes
    /// may be options alone.
    pub(super) fn payload(&self, side: &Direction, beyond: u64, stamps: Stamps) -> u64 {
        let options = side.packets.saturating_mul(TIMESTAMPS);
        // No payload is sent before the handshake is done (except with TCP Fast Open, RFC 7413). Without
        // PSH, a few bytes are padding of short Ethernet frames, selective acknowledgements, or options.
        let opening = side.has(SYN) && !side.has(ACK | PSH);
        let lone = side.packets == 1 && side.has(SYN);
        if opening || lone || (beyond <= options && !side.has(PSH)) {
            return 0;
        }
        let all = self.with + self.without;
        let share = match (stamps, all) {
            (Stamps::Yes, _) => 1.0,
            (Stamps::No, _) | (_, 0) => 0.0,
            _ => match (self.with as f64 / all as f64, stamps) {
                (share, _) if share <= 1.0 - MOST => 0.0,
                (share, _) if share >= MOST => 1.0,
                (_, Stamps::Likely) => 1.0,
                (share, _) => share,
            },
        };
        // A SYN has more options than other segments, with or without timestamps.
        let syn = match side.has(SYN) {
            true => self.syn_options as f64 / self.syns.max(1) as f64,
            false => 0.0,
        };
        let more = if side.has(SYN) {
            SYN_OPTIONS - TIMESTAMPS
        } else {
            0
        };
        let with = options.saturating_add(more) as f64;
        let mean = with * share + syn * (1.0 - share);
        beyond.saturating_sub((mean + 0.5) as u64)
    }
}

fn said_by(piece: &Direction, header: u32) -> Stamps {
    let (packets, header) = (piece.packets, u64::from(header));
    if header == 0 || packets == 0 {
        return Stamps::No;
    }
    let Some(beyond) = piece.bytes.checked_sub(packets.saturating_mul(header)) else {
        return Stamps::No;
    };
    let options = packets.saturating_mul(TIMESTAMPS);
    if packets == 1 && piece.has(SYN) {
        // A SYN without ACK offers them; only the answer shows whether they are used.
        return match (piece.has(ACK), beyond >= SYN_OPTIONS) {
            (_, false) => Stamps::No,
            (true, true) => Stamps::Yes,
            (false, true) => Stamps::Unknown,
        };
    }
    if beyond < options {
        // Resets have no options in most systems (RFC 7323 section 5.2).
        let reset = piece.has(RST) || piece.flags.is_none();
        return if reset { Stamps::Unknown } else { Stamps::No };
    }
    let pure = piece.flags.is_some_and(|f| f & !FIN == ACK);
    let hardly = packets >= MANY && beyond < options + packets * HARDLY;
    match (pure && beyond == options, hardly) {
        (true, _) => Stamps::Yes,
        (_, true) => Stamps::Likely,
        _ => Stamps::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(packets: u64, bytes: u64, flags: u8) -> Direction {
        Direction {
            packets,
            bytes,
            flags: Some(flags),
            ..Direction::default()
        }
    }

    #[test]
    fn records_tell_what_their_sizes_can() {
        for (what, of, said) in [
            ("an acknowledgement", piece(1, 40, ACK), Stamps::No),
            ("one with stamps", piece(1, 52, ACK), Stamps::Yes),
            ("an end with them", piece(1, 52, ACK | FIN), Stamps::Yes),
            (
                "twelve bytes of data",
                piece(1, 52, ACK | PSH),
                Stamps::Unknown,
            ),
            ("a reset", piece(1, 40, RST), Stamps::Unknown),
            ("an offer", piece(1, 60, SYN), Stamps::Unknown),
            ("no offer", piece(1, 52, SYN), Stamps::No),
            ("accepted", piece(1, 60, SYN | ACK), Stamps::Yes),
            ("refused", piece(1, 52, SYN | ACK), Stamps::No),
            (
                "a download's acknowledgements",
                piece(500, 500 * 52 + 420, 0x1b),
                Stamps::Likely,
            ),
            ("without", piece(500, 500 * 40 + 420, 0x1b), Stamps::No),
            (
                "a short request",
                piece(5, 5 * 52 + 420, 0x1b),
                Stamps::Unknown,
            ),
        ] {
            assert_eq!(said_by(&of, 40), said, "{what}");
        }
        // Payload alone gives no evidence.
        assert_eq!(said_by(&piece(3, 9_000, ACK), 0), Stamps::No);
    }

    #[test]
    fn a_connection_that_says_nothing_is_like_the_others() {
        let mut headers = Headers::default();
        let request = piece(5, 5 * 40 + 500, 0x1b);
        let payload = |h: &Headers, stamps| h.payload(&request, 500, stamps);
        assert_eq!(payload(&headers, Stamps::Unknown), 500);
        for _ in 0..3 {
            assert_eq!(
                headers.hear(&piece(1, 52, ACK), 40, Stamps::Unknown),
                Stamps::Yes
            );
        }
        assert_eq!(payload(&headers, Stamps::Unknown), 500 - 60 - 8);
        // What its own packets contradict, it does not have; and that is final.
        assert_eq!(
            headers.hear(&piece(1, 40, ACK), 40, Stamps::Yes),
            Stamps::No
        );
        assert_eq!(headers.hear(&piece(1, 52, ACK), 40, Stamps::No), Stamps::No);
        assert_eq!(payload(&headers, Stamps::No), 500);
        // Three with, and now three without: their mean, unless it is likely.
        headers.hear(&piece(1, 40, ACK), 40, Stamps::Unknown);
        headers.hear(&piece(1, 40, ACK), 40, Stamps::Unknown);
        assert_eq!(payload(&headers, Stamps::Unknown), 500 - 34);
        assert_eq!(payload(&headers, Stamps::Likely), 500 - 68);
        // Nearly no other connection has them, so these bytes are payload.
        for _ in 0..9 {
            headers.hear(&piece(1, 40, ACK), 40, Stamps::Unknown);
        }
        assert_eq!(payload(&headers, Stamps::Likely), 500);
    }
}
