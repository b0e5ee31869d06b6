//! Files of version 2.

use swell_base::{Code, Dur, Warning};

use crate::{Datagrams, Run};

/// The warning about information missing in an older version.
pub(super) fn warning(version: u64) -> Warning {
    Warning::warning(
        Code::OldVersion,
        format!(
            "the model file is of version {version}: a user with a connection that stays open is silent \
             until it ends, and long datagram flows are out of order; learn the model again"
        ),
    )
}

/// Converts a datagram flow. For long flows, version 2 lists blocks of `block` packets, evenly spread over
/// all `total` packets. Each block becomes a run per direction that represents its share.
pub(super) fn datagrams(
    packets: Vec<(Dur, bool, u32)>,
    total: Option<u64>,
    block: Option<u32>,
) -> Datagrams {
    let listed = packets.len() as u64;
    let total = total.unwrap_or(listed).max(listed);
    if total == listed {
        return Datagrams {
            packets,
            ..Datagrams::default()
        };
    }
    let scale = total as f64 / listed.max(1) as f64;
    let mut runs = [Vec::new(), Vec::new()];
    let mut ended = [Dur::ZERO; 2];
    let mut at = Dur::ZERO;
    let length = block.unwrap_or(1).max(1) as usize;
    for kept in packets.chunks(length) {
        let span = kept.iter().map(|p| p.0).sum::<Dur>().scale(scale);
        for end in [0, 1] {
            let sizes: Vec<u32> = kept
                .iter()
                .filter(|p| p.1 == (end == 0))
                .map(|p| p.2)
                .collect();
            let (Some(&least), Some(&most)) = (sizes.iter().min(), sizes.iter().max()) else {
                continue;
            };
            let n = (sizes.len() as f64 * scale).round().clamp(1.0, 4e9);
            let mean = sizes.iter().map(|&b| f64::from(b)).sum::<f64>() / sizes.len() as f64;
            let bytes = (mean * n).round() as u64;
            let span = if n > 1.0 {
                span.scale(1.0 - 1.0 / n)
            } else {
                Dur::ZERO
            };
            runs[end].push(Run {
                pause: at - ended[end],
                span,
                packets: n as u32,
                bytes: bytes.clamp(n as u64 * u64::from(least), n as u64 * u64::from(most)),
                sizes: [least, most],
            });
            ended[end] = at + span;
        }
        at += span;
    }
    Datagrams {
        packets: Vec::new(),
        runs,
    }
}
