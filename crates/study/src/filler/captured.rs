//! Pre-existing traffic from a packet trace.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use swell_base::Dur;
use swell_capture::{Error, Packet, Reader};

use super::Trace;

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
    /// Nothing in it crosses from one side to the other.
    #[error("{name}: no packet leads from one side to the other; {packets} packets were read")]
    OneSided {
        /// The file.
        name: String,
        /// Packets read.
        packets: u64,
    },
}

/// Reads a capture. Inside is who has a private address (RFC 1918, RFC 4193); where nobody or
/// everybody has, the address seen most often. The direction with more bytes becomes the first.
/// Packets between two hosts of one side are left out and counted; times that step backwards are
/// put in order.
///
/// # Errors
/// When the file cannot be read, and when nothing in it has a direction.
pub fn captured(path: &Path) -> Result<Trace, TraceError> {
    let name = path.file_name().map_or_else(
        || path.display().to_string(),
        |f| f.to_string_lossy().into_owned(),
    );
    // Commas would break the study's table.
    let name: String = name.split('.').next().unwrap_or("trace").replace(',', "-");
    let mut reader = Reader::open(path)?;
    let mut packets = Vec::new();
    let mut seen: BTreeMap<IpAddr, u64> = BTreeMap::new();
    while let Some(packet) = reader.next_packet()? {
        for host in [packet.src, packet.dst] {
            *seen.entry(host).or_default() += 1;
        }
        packets.push(packet);
    }
    packets.sort_by_key(|p: &Packet| p.time);
    let private = seen.keys().filter(|&&a| is_private(a)).count();
    let busiest = seen
        .iter()
        .max_by_key(|&(_, &n)| n)
        .map(|(&address, _)| address);
    let inside = |a: IpAddr| {
        if private == 0 || private == seen.len() {
            Some(a) == busiest
        } else {
            is_private(a)
        }
    };
    let first = packets.first().map_or(0, |p| p.time);
    let last = packets.last().map_or(0, |p| p.time);
    let mut both = [Vec::new(), Vec::new()];
    let mut left_out = 0;
    for p in &packets {
        let way = match (inside(p.src), inside(p.dst)) {
            (true, false) => 0,
            (false, true) => 1,
            _ => {
                left_out += 1;
                continue;
            }
        };
        // Offloaded packets were several on the wire; what was on it is not known.
        let at = Dur::from_nanos(p.time.saturating_sub(first).unsigned_abs());
        both[way].push((at, p.ip_len));
    }
    let bytes = |way: &[(Dur, u32)]| way.iter().map(|p| u64::from(p.1)).sum::<u64>();
    if bytes(&both[1]) > bytes(&both[0]) {
        both.swap(0, 1);
    }
    if both[0].is_empty() {
        return Err(TraceError::OneSided {
            name,
            packets: packets.len() as u64,
        });
    }
    // Some time for the last packet to arrive.
    let duration = Dur::from_nanos(last.saturating_sub(first).unsigned_abs()) + Dur::from_secs(1);
    Ok(Trace {
        name,
        packets: both.map(Into::into),
        duration,
        left_out,
    })
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => a.is_private() || a.is_link_local(),
        // RFC 4193: fc00::/7.
        IpAddr::V6(a) => a.segments()[0] & 0xfe00 == 0xfc00 || a.is_unicast_link_local(),
    }
}
