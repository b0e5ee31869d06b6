//! What a tap would count of a synthetic model.

use swell_traffic::{Class, Exchange, Session, Totals};

/// Payload of a segment, headers of TCP and UDP over IPv4 (with timestamps for TCP), and a segment with a SYN.
const SEGMENT: u64 = 1_448;
const HEADERS: u64 = 52;
const UDP_HEADERS: u64 = 28;
const SYN: u64 = 60;
/// Segments that one ACK acknowledges (RFC 5681 section 4.2), after the first ones of a connection, which Linux
/// acknowledges one by one (`TCP_MAX_QUICKACKS`). Models without measured ACKs are played so.
const ACKED: u64 = 2;
const QUICK: u64 = 16;

/// Packets and bytes of a connection from the client and from the server, as a tap would count them.
fn packets(exchange: &Exchange) -> [(u64, u64); 2] {
    let payload = exchange.bytes();
    match exchange {
        Exchange::Datagrams(d) => {
            let packets = d.count();
            [0, 1].map(|end| (packets[end], payload[end] + packets[end] * UDP_HEADERS))
        }
        Exchange::Attempt { retries, refused } => {
            let (asked, refusals) = (1 + retries.len() as u64, u64::from(*refused));
            [(asked, asked * SYN), (refusals, refusals * (HEADERS - 12))]
        }
        Exchange::Sequential(_) | Exchange::Concurrent { .. } => {
            let units: Vec<[u64; 2]> = match exchange {
                Exchange::Sequential(turns) => {
                    turns.iter().map(|t| [t.request, t.response]).collect()
                }
                _ => vec![payload],
            };
            // SYN, ACK of the SYN/ACK, and FIN or its ACK; SYN/ACK and FIN.
            let mut packets = [3, 2];
            let mut quick = [QUICK; 2];
            for unit in units {
                for end in [0, 1] {
                    let segments = unit[end].div_ceil(SEGMENT);
                    let first = segments.min(quick[end]);
                    quick[end] -= first;
                    packets[end] += segments;
                    packets[1 - end] += first + (segments - first).div_ceil(ACKED);
                }
            }
            [0, 1].map(|end| {
                (
                    packets[end],
                    payload[end] + packets[end] * HEADERS + SYN - HEADERS,
                )
            })
        }
    }
}

/// What a tap would count of the model's sessions.
pub(super) fn totals(sessions: &[Session], classes: &[Class]) -> Totals {
    let mut sums = [[0.0f64; 2]; 2];
    let mut flows = [0.0f64; 2];
    for s in sessions {
        let udp = classes.get(s.class as usize).is_some_and(|c| c.udp);
        for c in s.connections() {
            flows[usize::from(udp)] += s.weight;
            for (end, (packets, bytes)) in packets(&c.exchange).into_iter().enumerate() {
                let to = usize::from(s.outside) ^ end;
                sums[0][to] += s.weight * packets as f64;
                sums[1][to] += s.weight * bytes as f64;
            }
        }
    }
    let [packets, bytes] = sums.map(|both| both.map(|x| x.round() as u64));
    let [tcp, udp] = flows.map(|x| x.round() as u64);
    Totals {
        packets,
        bytes,
        tcp_connections: tcp,
        tcp_handshakes: tcp,
        udp_flows: udp,
        ..Totals::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Dur;
    use swell_traffic::{Connection, Group, Turn, Wire};

    /// What a tap sees of a session: segments of 1448 bytes with 52 of headers, their ACKs, and the segments that open
    /// and close it.
    #[test]
    fn totals_are_those_of_a_tap() {
        let turn = Turn {
            request: 1_448,
            response: 1_449,
            ..Turn::default()
        };
        let connection = Connection {
            gap: Dur::ZERO,
            server: 0,
            exchange: Exchange::Sequential(vec![turn]),
            client_window: 0,
            server_window: 0,
            wire: Wire::default(),
            writes: Default::default(),
            waits: Vec::new(),
            left_censored: false,
            right_censored: false,
            overlap: None,
        };
        let session = |outside| Session {
            class: 0,
            start: Dur::ZERO,
            weight: 2.0,
            client: 0,
            outside,
            lasted: None,
            groups: vec![Group {
                think: Dur::ZERO,
                connections: vec![connection.clone()],
            }],
        };
        let classes = [Class {
            name: "http".into(),
            udp: false,
        }];
        let (up, down) = (1_448 + 6 * 52 + 8, 1_449 + 5 * 52 + 8);
        let found = totals(&[session(false)], &classes);
        assert_eq!((found.packets, found.bytes), ([12, 10], [2 * up, 2 * down]));
        assert_eq!((found.tcp_connections, found.udp_flows), (2, 0));
        let other = totals(&[session(true)], &classes);
        assert_eq!((other.packets, other.bytes), ([10, 12], [2 * down, 2 * up]));
    }
}
