//! The kernel's tables of a host's sockets and losses, below /proc/net.

use std::fs;
use std::io;
use std::net::IpAddr;

use super::Host;

/// Who can connect to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Listening {
    /// No program listens.
    Nobody,
    /// Only programs on the host itself: the socket is bound to a loopback address.
    Loopback,
    /// Any host.
    Everyone,
}

/// A loss counted by a host's kernel, which no network model caused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLoss {
    /// The kernel's name: table and counter.
    pub counter: String,
    /// The value of the counter.
    pub count: u64,
}

impl Host {
    /// Whether a program listens on a TCP port, or has a UDP socket with that number. This does not connect, so it is
    /// safe for a server that accepts only one connection.
    ///
    /// # Errors
    /// If the tables cannot be read.
    pub fn listening(&self, port: u16) -> io::Result<Listening> {
        self.enter(|| {
            let mut best = Listening::Nobody;
            // States of include/net/tcp_states.h: 10 is LISTEN; a UDP socket without a peer is 7 (CLOSE).
            for (table, state) in [("tcp", 10), ("tcp6", 10), ("udp", 7), ("udp6", 7)] {
                // IPv6 may be disabled.
                let text = fs::read_to_string(format!("/proc/thread-self/net/{table}"));
                best = best.max(listening(&text.unwrap_or_default(), port, state));
            }
            Ok(best)
        })?
    }

    /// Packets and connections that the host's kernel lost or refused since the host was created, by counter. Zero
    /// counters are omitted. The list is empty if every program reads its data in time.
    ///
    /// # Errors
    /// If the tables cannot be read.
    pub fn losses(&self) -> io::Result<Vec<HostLoss>> {
        self.enter(|| {
            let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            let mut all = pairs(&read("snmp")?);
            all.extend(pairs(&read("netstat")?));
            // Without IPv6 this table does not exist.
            all.extend(lines(&read("snmp6").unwrap_or_default()));
            Ok(all
                .into_iter()
                .filter(|l| l.count > 0 && LOSSES.contains(&l.counter.as_str()))
                .collect())
        })?
    }
}

/// Counters of losses in the end host, which no model caused (Documentation/networking/snmp_counter.rst). Without
/// `Tcp.InErrs`: beside damaged segments, which `Tcp.InCsumErrors` has, Linux counts there every SYN/ACK that comes again to an
/// open connection (RFC 5961 section 4), and that is what a lost acknowledgement or a long delay causes.
const LOSSES: [&str; 21] = [
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip.ReasmFails",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp.InCsumErrors",
    "Udp.MemErrors",
    "Udp6RcvbufErrors",
    "Udp6SndbufErrors",
    "Udp6InCsumErrors",
    "Udp6MemErrors",
    "Ip6InDiscards",
    "Ip6OutDiscards",
    "Ip6ReasmFails",
    "Tcp.InCsumErrors",
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.RcvPruned",
    "TcpExt.TCPAbortOnMemory",
];

/// Parses tables with pairs of lines: names, then numbers, each after the table's name.
fn pairs(text: &str) -> Vec<HostLoss> {
    let lines: Vec<&str> = text.lines().collect();
    let (pairs, _) = lines.as_chunks::<2>();
    let pair = |[names, numbers]: &[&str; 2]| {
        let (table, names) = names.split_once(':').unwrap_or_default();
        let (_, numbers) = numbers.split_once(':').unwrap_or_default();
        let counters = names.split_whitespace().zip(numbers.split_whitespace());
        let counters = counters.filter_map(|(name, number)| {
            Some(HostLoss {
                counter: format!("{table}.{name}"),
                count: number.parse().ok()?,
            })
        });
        counters.collect::<Vec<_>>()
    };
    pairs.iter().flat_map(pair).collect()
}

/// Parses a table with a name and a number in each line.
fn lines(text: &str) -> Vec<HostLoss> {
    let line = |line: &str| {
        let (name, number) = line.split_once(char::is_whitespace)?;
        Some(HostLoss {
            counter: name.into(),
            count: number.trim().parse().ok()?,
        })
    };
    text.lines().filter_map(line).collect()
}

/// Who can reach a socket in this state on `port`, from a table of sockets (proc_net(5)).
fn listening(text: &str, port: u16, state: u8) -> Listening {
    let socket = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (address, local) = words.next()?.split_once(':')?;
        let in_state = words.nth(1)?;
        let matches = u16::from_str_radix(local, 16) == Ok(port)
            && u8::from_str_radix(in_state, 16) == Ok(state);
        matches.then(|| match self::address(address) {
            Some(a) if a.to_canonical().is_loopback() => Listening::Loopback,
            _ => Listening::Everyone,
        })
    };
    let best = text.lines().skip(1).filter_map(socket).max();
    best.unwrap_or(Listening::Nobody)
}

/// An address in the kernel's format: words of 32 bits in native byte order.
fn address(hex: &str) -> Option<IpAddr> {
    let (words, _) = hex.as_bytes().as_chunks::<8>();
    let word = |w: &[u8; 8]| {
        let text = std::str::from_utf8(w).ok()?;
        Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes())
    };
    let octets: Vec<u8> = words.iter().map(word).collect::<Option<Vec<_>>>()?.concat();
    match octets.len() {
        4 => Some(<[u8; 4]>::try_from(octets).ok()?.into()),
        16 => Some(<[u8; 16]>::try_from(octets).ok()?.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_as_the_kernel_prints_them() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue\n";
        let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
        let table = format!(
            "{head}   0: {loopback:08X}:1451 00000000:0000 0A 00000000:00000000\n   1: 00000000:0050 00000000:0000 0A 0\n   \
             2: 00000000:0051 00000000:0000 01 0\nnonsense\n"
        );
        assert_eq!(listening(&table, 5201, 10), Listening::Loopback);
        assert_eq!(listening(&table, 80, 10), Listening::Everyone);
        assert_eq!(listening(&table, 81, 10), Listening::Nobody);
        let six = format!("{head}   0: 00000000000000000000000000000000:0050 0:0 0A\n");
        assert_eq!(listening(&six, 80, 10), Listening::Everyone);
        assert_eq!(listening("", 80, 10), Listening::Nobody);
    }

    #[test]
    fn what_is_counted_for_ipv4_is_counted_for_ipv6() {
        for name in LOSSES {
            if let Some((table @ ("Ip" | "Udp"), counter)) = name.split_once('.') {
                let six = format!("{table}6{counter}");
                assert!(LOSSES.contains(&six.as_str()), "{six}");
            }
        }
    }

    #[test]
    fn counters_are_read_from_both_forms_of_table() {
        let text = "Udp: InDatagrams RcvbufErrors\nUdp: 5 45000\nTcp: InErrs\nTcp: x\n";
        let read = pairs(text);
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[1].counter.as_str(), read[1].count),
            ("Udp.RcvbufErrors", 45_000)
        );
        assert_eq!(lines("Udp6RcvbufErrors   \t 7\n")[0].count, 7);
    }
}
