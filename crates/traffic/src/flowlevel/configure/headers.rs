//! Estimates how many bytes of a TCP packet are headers, from records that count only bytes and packets.
//!
//! Timestamps take 12 bytes of every packet of a connection, or of none (RFC 7323 section 3.2, appendix
//! A). That is 30 % of the headers of an ACK, and more than the payload of many small transfers. A record
//! is certain evidence in these cases:
//!
//! - If the mean packet is smaller than headers with timestamps, the connection has none.
//! - Pure ACKs of exactly that size have timestamps, and so have several packets of exactly that mean.
//! - A single SYN that does not offer them has none, and one that does counts in the share below.
//! - A single SYN/ACK large enough for timestamps beside the other options (20 bytes on most systems) has
//!   them.
//!
//! Several packets in a direction that are hardly larger than headers with timestamps are weak evidence. A request
//! without timestamps has such a mean if its number of ACKs happens to be right, and about as often one that is a
//! little smaller. So these connections count only as far as they are more than twenty times as many as those, and if
//! their records have very different numbers of packets.
//!
//! Both hosts must have timestamps. So a connection without evidence is taken to have none if one of its hosts has
//! shown connections without, and none with them. Otherwise it is like those with evidence: like the majority if most
//! of them agree, else with their mean.
//!
//! Without any evidence, nothing is subtracted. The other options of a SYN are estimated by the mean of the single
//! SYNs.

use super::super::record::{ACK, FIN, PSH, RST, SYN, Uniflow};
use super::table::Table;

/// Options of a segment with timestamps, padded (RFC 7323 appendix A).
pub(super) const TIMESTAMPS: u64 = 12;
/// Options of a SYN that offers them: those of Linux (`tcp_syn_options`).
const SYN_OPTIONS: u64 = 20;
/// So many packets of exactly the size of ACKs with timestamps are no coincidence.
const MANY: u64 = 4;
/// In directions with at least `LONG` packets, and less than `HARDLY` extra bytes per packet, most packets
/// are ACKs.
const LONG: u64 = 16;
const HARDLY: u64 = 8;
/// Weak evidence needs records whose numbers of packets differ by this factor. Equal requests without timestamps have
/// such means for numbers that differ by 1.7 at most (20 / 12).
const WIDE: u64 = 2;
/// Directions of at least `LONG` packets with this many extra bytes per packet and more, but too few for timestamps.
const NEARLY: u64 = 6;
/// Connections of a host without timestamps that tell that it has none.
const SEVERAL: u64 = 3;
/// How many times as many connections have weak evidence by chance as have nearly the size, at most: requests and
/// downloads of limited size often have no more packets.
const MORE: u64 = 20;
/// Packets of a direction that have no timestamps in a connection with them: resets (RFC 7323 section 5.2).
const RESETS: u64 = 2;

/// Headers of TCP over IPv4 in Ethernet frames without options, and the shortest such frames as captures have them.
const FRAME_HEADERS: u32 = 54;
const SHORTEST_FRAME: u32 = 60;
/// Most payload of such a frame.
const SEGMENT: u64 = 1_460;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stamps {
    #[default]
    Unknown,
    Likely,
    Yes,
    /// Certain once it has been seen.
    No,
    /// Bytes are those of the payload alone.
    Bare,
}

/// Share above which the connections agree, or below whose complement nearly none do; the others are
/// errors.
const MOST: f64 = 0.75;

/// Connections by their evidence.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    with: u64,
    without: u64,
    /// Those `without` whose packets have nearly the size of timestamps.
    nearly: u64,
    /// Those with weak evidence of timestamps.
    likely: u64,
}

impl Votes {
    /// How many of the likely ones are more than chance gives.
    fn meant(&self) -> u64 {
        self.likely.saturating_sub(MORE * self.nearly)
    }

    fn join(&mut self, other: &Votes) {
        self.with += other.with;
        self.without += other.without;
        self.nearly += other.nearly;
        self.likely += other.likely;
    }
}

/// The evidence so far.
#[derive(Debug, Default)]
pub(super) struct Headers {
    all: Votes,
    /// The smallest and largest number of packets of records with weak evidence.
    likely_packets: [u64; 2],
    /// By host. None is forgotten, so their times do not matter.
    hosts: Table<u128, Votes>,
    /// Single SYNs without room for timestamps, and the options of all of them together.
    syns: u64,
    syn_options: u64,
}

impl Headers {
    /// Adds the evidence of a direction's record about its connection between `hosts`, of which `known` is known. `sender`
    /// is the index of the host that sent these packets.
    /// `header` is the size of headers without options; zero if bytes are of the payload alone. At most `capacity`
    /// hosts are remembered.
    pub(super) fn hear(
        &mut self,
        piece: &Uniflow,
        header: u32,
        known: Stamps,
        hosts: &[u128; 2],
        sender: usize,
        capacity: usize,
    ) -> Stamps {
        if header == 0 {
            return Stamps::Bare;
        }
        let said = said_by(piece, header);
        let beyond = piece.payload(header);
        if piece.packets == 1 && piece.has(SYN) && beyond < SYN_OPTIONS {
            self.syns += 1;
            self.syn_options += beyond;
        }
        if said == Stamps::Likely {
            let [least, most] = &mut self.likely_packets;
            (*least, *most) = match self.all.likely {
                0 => (piece.packets, piece.packets),
                _ => ((*least).min(piece.packets), (*most).max(piece.packets)),
            };
        }
        let one = |with: bool, without: bool, likely: bool| Votes {
            with: u64::from(with),
            without: u64::from(without),
            nearly: u64::from(without && piece.packets >= LONG && beyond / NEARLY >= piece.packets),
            likely: u64::from(likely),
        };
        // Only the answer shows whether they are used, but those who do not offer them count as well.
        let offers = piece.packets == 1 && piece.has(SYN) && said == Stamps::Unknown;
        let vote = match (known, said) {
            (Stamps::Unknown, Stamps::Unknown) if offers => one(true, false, false),
            (Stamps::No | Stamps::Bare, _) | (_, Stamps::Unknown) => return known,
            (Stamps::Yes | Stamps::Likely, Stamps::Likely) | (Stamps::Yes, Stamps::Yes) => {
                return known;
            }
            (_, Stamps::Likely) => one(false, false, true),
            (_, Stamps::Yes) => one(true, false, false),
            _ => one(false, true, false),
        };
        self.all.join(&vote);
        // A lone SYN offers them or not, and says nothing of the host that it is for.
        let lone = piece.packets == 1 && piece.has(SYN) && !piece.has(ACK);
        let about = if lone {
            &hosts[sender..=sender]
        } else {
            &hosts[..]
        };
        for host in about {
            if self.hosts.len() < capacity || self.hosts.get(host).is_some() {
                self.hosts.update(*host, |votes| {
                    votes.join(&vote);
                    (0, ())
                });
            }
        }
        said
    }

    /// The part of the connections with weak evidence, or without any, that are taken to have timestamps.
    fn share(&self, stamps: Stamps) -> f64 {
        let [least, most] = self.likely_packets;
        let all = &self.all;
        let meant = match most >= WIDE.saturating_mul(least) {
            true => all.meant(),
            false => 0,
        };
        let with = all.with + meant;
        let (part, of) = match stamps {
            Stamps::Likely if meant > 0 => (meant, all.likely),
            _ => (with, with + all.without),
        };
        match part as f64 / of.max(1) as f64 {
            share if share <= 1.0 - MOST => 0.0,
            share if share >= MOST => 1.0,
            share => share,
        }
    }

    /// Whether a host has shown connections without timestamps alone.
    fn has_none(&self, host: &u128) -> bool {
        self.hosts
            .get(host)
            .is_some_and(|votes| votes.without >= SEVERAL && votes.with == 0 && votes.meant() == 0)
    }

    /// Payload of packets with `beyond` bytes beyond their headers without options, of a connection between `hosts`;
    /// zero if these bytes may be options alone.
    pub(super) fn payload(
        &self,
        side: &Uniflow,
        beyond: u64,
        stamps: Stamps,
        hosts: &[u128; 2],
    ) -> u64 {
        if stamps == Stamps::Bare {
            return beyond;
        }
        let options = side.packets.saturating_mul(TIMESTAMPS);
        // No payload is sent before the handshake is done (except with TCP Fast Open, RFC 7413). Without
        // PSH, a few bytes are padding of short Ethernet frames, selective acknowledgements, or options.
        let opening = side.has(SYN) && !side.has(ACK | PSH);
        let lone = side.packets == 1 && side.has(SYN);
        let few = match side.flags {
            Some(_) if side.has(PSH) => false,
            Some(_) => beyond <= options,
            None => beyond <= options.min(SYN_OPTIONS),
        };
        if opening || lone || few {
            return 0;
        }
        let share = match stamps {
            Stamps::Yes => 1.0,
            Stamps::No => 0.0,
            _ => match self.share(stamps) {
                0.0 => 0.0,
                _ if hosts.iter().any(|host| self.has_none(host)) => 0.0,
                share => share,
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

/// Padding in bytes of a frame with nothing but headers of this length.
pub(super) fn padding(header: u32) -> u64 {
    match header {
        FRAME_HEADERS => u64::from(SHORTEST_FRAME - FRAME_HEADERS),
        // Bytes are those of packets, or headers fill a frame.
        _ => 0,
    }
}

/// What is left of the payload of a side without the padding of its frames, of a connection without timestamps. If the
/// other side sends the data, nearly all frames are acknowledgements.
pub(super) fn without_padding(payload: u64, side: &Uniflow, other: &Uniflow, each: u64) -> u64 {
    let hardly = |d: &Uniflow| d.bytes < d.packets.saturating_mul(TIMESTAMPS);
    if each == 0 || !hardly(side) || other.packets == 0 || hardly(other) {
        return payload;
    }
    let least = payload.saturating_sub(side.packets.saturating_mul(each));
    let padded = side.packets.saturating_sub(least.div_ceil(SEGMENT));
    payload.saturating_sub(padded.saturating_mul(each))
}

fn said_by(piece: &Uniflow, header: u32) -> Stamps {
    let (packets, header) = (piece.packets, u64::from(header));
    if packets == 0 {
        return Stamps::Unknown;
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
        let reset = piece.has(RST) || piece.flags.is_none();
        let spared = if reset { RESETS * TIMESTAMPS } else { 0 };
        return match beyond.saturating_add(spared) < options {
            true => Stamps::No,
            false => Stamps::Unknown,
        };
    }
    let pure = piece.flags.is_some_and(|f| f & !FIN == ACK);
    let hardly = packets >= LONG && beyond < options.saturating_add(packets.saturating_mul(HARDLY));
    match (beyond == options && (pure || packets >= MANY), hardly) {
        (true, _) => Stamps::Yes,
        (_, true) => Stamps::Likely,
        _ => Stamps::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(packets: u64, bytes: u64, flags: u8) -> Uniflow {
        Uniflow {
            packets,
            bytes,
            flags: Some(flags),
            ..Uniflow::default()
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
    }

    const HOSTS: [u128; 2] = [1, 2];

    fn hear(h: &mut Headers, of: &Uniflow, known: Stamps) -> Stamps {
        h.hear(of, 40, known, &HOSTS, 0, 100)
    }

    #[test]
    fn a_connection_that_says_nothing_is_like_the_others() {
        let mut headers = Headers::default();
        let request = piece(5, 5 * 40 + 500, 0x1b);
        // Of hosts of which nothing is known.
        let payload = |h: &Headers, stamps| h.payload(&request, 500, stamps, &[3, 4]);
        assert_eq!(payload(&headers, Stamps::Unknown), 500);
        for _ in 0..3 {
            let said = hear(&mut headers, &piece(1, 52, ACK), Stamps::Unknown);
            assert_eq!(said, Stamps::Yes);
        }
        assert_eq!(payload(&headers, Stamps::Unknown), 500 - 60 - 8);
        // What its own packets contradict, it does not have; and that is final.
        let bare = piece(1, 40, ACK);
        assert_eq!(hear(&mut headers, &bare, Stamps::Yes), Stamps::No);
        assert_eq!(
            hear(&mut headers, &piece(1, 52, ACK), Stamps::No),
            Stamps::No
        );
        assert_eq!(payload(&headers, Stamps::No), 500);
        // Three with, and now three without: their mean.
        hear(&mut headers, &bare, Stamps::Unknown);
        hear(&mut headers, &bare, Stamps::Unknown);
        assert_eq!(payload(&headers, Stamps::Unknown), 500 - 34);
        // Nearly no other connection has them, so these bytes are payload.
        for _ in 0..9 {
            hear(&mut headers, &bare, Stamps::Unknown);
        }
        assert_eq!(payload(&headers, Stamps::Likely), 500);
    }

    /// Half of the clients have timestamps, and half have none. Each is like its own connections.
    #[test]
    fn a_host_without_timestamps_is_told_from_others() {
        let mut headers = Headers::default();
        for _ in 0..10 {
            headers.hear(&piece(1, 52, ACK), 40, Stamps::Unknown, &[1, 9], 0, 100);
            headers.hear(&piece(1, 40, ACK), 40, Stamps::Unknown, &[2, 9], 0, 100);
        }
        let request = piece(5, 5 * 40 + 500, 0x1b);
        let payload = |client| headers.payload(&request, 500, Stamps::Unknown, &[client, 9]);
        assert_eq!((payload(2), payload(1)), (500, 500 - 34));
    }

    /// Requests of one size, acknowledging downloads of many sizes. Only with timestamps do the means stay above 52
    /// bytes whatever the number of packets.
    #[test]
    fn acknowledgements_of_many_downloads_show_timestamps_and_few_do_not() {
        let learnt = |numbers: &[u64], each: u64| {
            let mut headers = Headers::default();
            let pieces = numbers.iter().map(|&n| piece(n, n * each + 500, 0x1b));
            let said: Vec<_> = (pieces.clone())
                .map(|p| hear(&mut headers, &p, Stamps::Unknown))
                .collect();
            let payload = pieces
                .zip(said)
                .map(|(p, stamps)| headers.payload(&p, p.bytes - 40 * p.packets, stamps, &[3, 4]));
            payload.collect::<Vec<u64>>()
        };
        let many = [5, 20, 30, 40, 60, 100, 200, 400, 900, 1_500];
        assert_eq!(learnt(&many, 40), [500; 10]);
        assert_eq!(learnt(&many, 52), [500 - 8; 10]);
        // These means are between 52 and 60 bytes without timestamps, too.
        for number in 26..=41 {
            assert_eq!(learnt(&[number; 30], 40), [500; 30], "{number}");
        }
        assert_eq!(learnt(&(26..=41).collect::<Vec<u64>>(), 40), [500; 16]);
    }

    /// Without flags, the payload of a request with more than forty packets was taken for options.
    #[test]
    fn records_without_flags_have_payload() {
        let mut headers = Headers::default();
        for n in [5, 30, 45, 60, 200] {
            let request = Uniflow {
                flags: None,
                ..piece(n, n * 40 + 512, 0)
            };
            let stamps = hear(&mut headers, &request, Stamps::Unknown);
            assert_eq!(headers.payload(&request, 512, stamps, &HOSTS), 512, "{n}");
        }
        // A handshake has none.
        let handshake = Uniflow {
            flags: None,
            ..piece(3, 132, 0)
        };
        assert_eq!(headers.payload(&handshake, 12, Stamps::Unknown, &HOSTS), 0);
    }

    /// Scanners without timestamps send lone SYNs to a server that has them.
    #[test]
    fn a_scan_says_nothing_of_its_target() {
        let mut headers = Headers::default();
        for _ in 0..200 {
            headers.hear(&piece(1, 52, ACK), 40, Stamps::Unknown, &[1, 8], 0, 100);
        }
        for _ in 0..5 {
            headers.hear(&piece(1, 44, SYN), 40, Stamps::Unknown, &[20, 9], 0, 100);
        }
        let request = piece(5, 5 * 52 + 500, 0x1b);
        let payload = |client| headers.payload(&request, 560, Stamps::Unknown, &[client, 9]);
        // Less the options of the SYN, too.
        assert!((490..=500).contains(&payload(3)), "{}", payload(3));
        assert!((540..=560).contains(&payload(20)), "{}", payload(20));
    }

    #[test]
    fn payload_alone_is_taken_as_it_is() {
        let mut headers = Headers::default();
        hear(&mut headers, &piece(1, 52, SYN), Stamps::Unknown);
        let bytes = piece(9, 20, SYN | ACK);
        let stamps = headers.hear(&bytes, 0, Stamps::Unknown, &HOSTS, 0, 100);
        assert_eq!(headers.payload(&bytes, 20, stamps, &HOSTS), 20);
    }
}
