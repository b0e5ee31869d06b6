//! Warnings about what could not be observed, with numbers.

use swell_base::{Code, Dur, Warning};
use swell_traffic::{Exchange, Model};

use crate::counts::Counts;
use crate::hosts::Hosts;

mod capture;
mod link;

use capture::clock;
pub(crate) use capture::{coarse, leaps, repeated, sides_voted, super_packets};

/// Load that a model lacks, in per cent of a direction, above which its traffic is not that of the trace.
const MUCH_UNMODELLED: f64 = 5.0;

/// Share of the application bytes in datagrams, in per cent, above which most of the load does not yield.
const MOSTLY_DATAGRAMS: f64 = 50.0;

/// Share of the bytes, in per cent, below which flows need no explanation.
const FEW_BYTES: f64 = 0.1;

/// Says of flows on QUIC's ports why they are played as datagrams. The trace has `all` bytes.
fn no_talks(found: &[[u64; 2]; 4], all: f64) -> Option<Warning> {
    let reasons = [
        "the server sent first, so the beginning is not in the trace",
        "the server sent no data, or none for seconds",
        "both ends send at once, as in a call",
        "the server sends most data without a request",
    ];
    let [flows, bytes] = [0, 1].map(|k| found.iter().map(|n| n[k]).sum::<u64>());
    let parts = found.iter().zip(reasons).filter(|(n, _)| n[0] > 0);
    let parts: Vec<String> = parts.map(|(n, why)| format!("{why} ({})", n[0])).collect();
    let share = percent(bytes as f64, all);
    (share >= FEW_BYTES).then(|| {
        Warning::note(
            Code::Quic,
            format!(
                "{flows} flows on QUIC's ports ({share:.1} % of the bytes) are played as datagrams, for they show no \
                 requests and responses: {}",
                parts.join("; ")
            ),
        )
    })
}

/// Share of the bytes, in per cent, above which what was lost of long connections and flows is no detail.
const MUCH_COARSER: f64 = 5.0;

/// Says what was lost of connections and flows too long to keep whole. The trace has `all` bytes.
fn coarser(c: &Counts, all: f64) -> Vec<Warning> {
    let mut w = Vec::new();
    let mut put = |code, share: f64, text: String| match share > MUCH_COARSER {
        true => w.push(Warning::warning(code, text)),
        false => w.push(Warning::note(code, text)),
    };
    let [flows, spread] = c.spread;
    if flows > 0 {
        let share = percent(spread as f64, all);
        let moved = Dur::from_nanos((c.moved / spread.max(1) as f64) as u64 / 1000 * 1000);
        put(
            Code::BurstsSpread,
            share,
            format!(
                "{flows} UDP flows ({share:.1} % of the bytes) have more bursts than the model has room for: \
                 neighbours are spread evenly, which moves their bytes by up to {moved} in the mean. Played, they are \
                 smoother than in the trace. A larger `--budget` or a shorter trace keeps more of them; a replay of \
                 the trace keeps all"
            ),
        );
    }
    let [connections, merged, larger] = c.merged;
    if connections > 0 {
        let share = percent(larger as f64, all);
        let then = match larger {
            0 => "No burst beyond an initial window is twice as large for it".to_owned(),
            _ => format!(
                "{share:.1} % of the bytes are in bursts that are larger by a factor of {:.0} in the mean. A larger \
                 `--budget` or a shorter trace keeps more turns; a replay of the trace keeps all",
                c.growth / larger as f64
            ),
        };
        put(
            Code::TurnsMerged,
            share,
            format!(
                "{connections} connections ({:.1} % of the bytes) have more requests, responses and writes than the model \
                 has room for: neighbours are merged, so that they have fewer and larger ones. They carry as much in as \
                 much time. {then}",
                percent(merged as f64, all)
            ),
        );
    }
    w
}

/// Share of one number in another, in per cent.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

/// Wasserstein distance of sizes, in octaves, above which a sample is doubtful.
const MUCH: f64 = 0.1;

/// The warnings of a finished model.
pub(crate) fn doubts(m: &Model, c: &Counts, hosts: &Hosts, cut: u64) -> Vec<Warning> {
    let mut w = Vec::new();
    let t = &m.totals;
    let packets = (t.packets[0] + t.packets[1]) as f64;
    let bytes = (t.bytes[0] + t.bytes[1]) as f64;
    let connections = t.tcp_connections as f64;
    if m.sessions.is_empty() {
        w.push(Warning::warning(
            Code::NoTraffic,
            format!("the trace holds {packets} packets and no flow that could be modelled"),
        ));
    }
    let without = t.tcp_connections - t.tcp_handshakes;
    if percent(without as f64, connections) > 20.0 {
        w.push(Warning::warning(
            Code::FewHandshakes,
            format!(
                "{without} of {} TCP connections ({:.0} %) show no complete handshake: their round \
                 trips rest on other connections of their hosts, and they may be failed attempts",
                t.tcp_connections,
                percent(without as f64, connections)
            ),
        ));
    }
    if c.one_sided > 0 {
        w.push(Warning::warning(
            Code::OneSided,
            format!(
                "of {} connections one direction does not pass the tap; {} bytes of theirs are known \
                 by acknowledgements only, without sizes of packets and losses",
                c.one_sided, c.one_sided_bytes
            ),
        ));
    }
    // Data that come after the end of their connection may have been inferred from their ACKs.
    let stragglers_lacking = c.straggler_bytes.saturating_sub(c.one_sided_bytes);
    let lacking = percent((c.dropped + stragglers_lacking) as f64, bytes);
    w.extend(capture::left_out(lacking, MUCH_UNMODELLED));
    if c.gaps > 0 {
        let then = match lacking > MUCH_UNMODELLED {
            true => "or holds much later",
            false => "and are left out, so that the model carries what the trace does",
        };
        let text = format!(
            "{} connections have gaps in their sequence numbers, {} bytes, that the capture does not hold, {then}",
            c.gaps, c.gap_bytes
        );
        w.push(if percent(c.gap_bytes as f64, bytes) > 1.0 {
            Warning::warning(Code::CaptureGaps, text)
        } else {
            Warning::note(Code::CaptureGaps, text)
        });
    }
    if c.truncated > 0 {
        w.push(Warning::warning(
            Code::SnapLength,
            format!(
                "{} packets ({:.1} %) were captured too short for their transport header and are in \
                 no flow",
                c.truncated,
                percent(c.truncated as f64, packets)
            ),
        ));
    }
    for (side, name) in c.sides.iter().zip(["client", "server"]) {
        let poor = side.borrowed + side.few;
        if poor > 0 {
            let text = format!(
                "round trips of {name}s: {} of {} hosts have no sample and borrow from a host of \
                 their class, {} have fewer than 5, {} rest on data acknowledgements",
                side.borrowed, side.hosts, side.few, side.by_data
            );
            // A few hosts without a sample are normal; a majority is not.
            w.push(if 2 * side.borrowed > side.hosts {
                Warning::warning(Code::FewRttSamples, text)
            } else {
                Warning::note(Code::FewRttSamples, text)
            });
        }
        if side.hosts > 0 && side.borrowed == side.hosts {
            w.push(Warning::warning(
                Code::NoRtt,
                format!("no round trip of any {name} could be measured: all are taken as zero"),
            ));
        }
    }
    clock(&c.clock, &mut w);
    w.extend(coarse(c.tick));
    w.extend(repeated(c.repeated));
    let then = match c.joined_unknown {
        0 => String::new(),
        n => format!(
            "; of {n} connections the segments' size is unknown, and they are played with the profile's"
        ),
    };
    w.extend(super_packets(
        percent(c.joined as f64, bytes),
        &format!(
            "Each counts as the segments in it{then}. Capacities measured by them are less exact"
        ),
    ));
    let mut left = 0.0;
    let mut udp = 0.0;
    let mut application = 0.0;
    let mut quic = 0.0;
    let mut right_sessions = 0u64;
    for s in &m.sessions {
        let mut open = false;
        for x in s.connections() {
            let [up, down] = x.exchange.bytes();
            let b = s.weight * (up as f64 + down as f64);
            application += b;
            left += if x.left_censored { b } else { 0.0 };
            udp += match x.exchange {
                Exchange::Datagrams(_) => b,
                _ => 0.0,
            };
            let class = m.classes.get(s.class as usize);
            quic += match x.exchange {
                Exchange::Sequential(_) if class.is_some_and(|class| class.udp) => b,
                _ => 0.0,
            };
            open |= x.right_censored;
        }
        right_sessions += u64::from(open);
    }
    if left > 0.0 {
        let text = format!(
            "{:.1} % of the application bytes belong to connections without a beginning in the trace: they \
             began before it, or the capture lacks their first packets. What those carried is not in the model, and \
             their round trips rest on other connections",
            percent(left, application)
        );
        w.push(if percent(left, application) > 10.0 {
            Warning::warning(Code::LeftCensored, text)
        } else {
            Warning::note(Code::LeftCensored, text)
        });
    }
    let [flows, sent, pauses] = c.unclear;
    if flows > 0 {
        let share = percent(sent as f64, bytes);
        let text = format!(
            "{flows} connections of unknown round trip ({share:.1} % of the bytes) paused {pauses} times: whether \
             for acknowledgements or for their application, the trace does not tell. They are played without \
             these pauses, as fast as the link lets them: a live stream becomes a download. A trace with their \
             handshakes would tell"
        );
        w.push(if share > 5.0 {
            Warning::warning(Code::UnclearPauses, text)
        } else {
            Warning::note(Code::UnclearPauses, text)
        });
    }
    let tick = Dur::from_nanos(c.tick.unwrap_or(0));
    w.extend(m.in_step(tick).map(|found| {
        Warning::warning(
            Code::SessionsInStep,
            format!(
                "sessions send at the same times: bursts of {} to the {} have {:.1} times the energy that sessions with \
                 times of their own would give them. Played, each session has times of its own, so these bursts are \
                 missing; a replay of the trace keeps them",
                found.bin,
                ["right", "left"][found.direction],
                found.factor
            ),
        )
    }));
    if right_sessions > 0 {
        w.push(Warning::note(
            Code::RightCensored,
            format!(
                "{right_sessions} of {} sessions hold connections without an end in the trace: their \
                 sizes are lower bounds",
                m.sessions.len()
            ),
        ));
    }
    if m.duration < m.parameters.session_timeout * 2 && !m.sessions.is_empty() {
        w.push(Warning::warning(
            Code::ShortTrace,
            format!(
                "the trace lasts {:.0} s, less than twice the session time-out of {:.0} s: sessions are \
                 cut by its edges, and pauses between sessions cannot be told from pauses inside",
                m.duration.as_secs_f64(),
                m.parameters.session_timeout.as_secs_f64()
            ),
        ));
    }
    if udp > 0.0 {
        let share = percent(udp, application);
        let text = format!(
            "{share:.1} % of the application bytes are datagrams (calls, games, tunnels, name look-ups): \
             replayed open-loop, they do not answer to congestion"
        );
        w.push(match share > MOSTLY_DATAGRAMS {
            true => Warning::warning(
                Code::UdpOpenLoop,
                format!("{text}. TCP inside a tunnel does: capture inside it"),
            ),
            false => Warning::note(Code::UdpOpenLoop, text),
        });
    }
    if quic > 0.0 {
        w.push(Warning::note(
            Code::Quic,
            format!(
                "{:.1} % of the application bytes are QUIC: its requests and responses are told from sizes and \
                 times alone, one after the other, and are played with the congestion control and the handshake \
                 of the profile's TCP",
                percent(quic, application)
            ),
        ));
    }
    w.extend(no_talks(&c.no_talks, bytes));
    w.extend(coarser(c, bytes));
    w.extend(link::warnings(c));
    if c.concurrent > 0 {
        w.push(Warning::note(
            Code::Concurrent,
            format!(
                "{} of {} TCP connections with data have both ends sending at once: replayed as two \
                 independent chains of data and pauses",
                c.concurrent, c.with_data
            ),
        ));
    }
    if hosts.none_inside() {
        w.push(Warning::warning(
            Code::Sides,
            "no host of the trace is in a network that was said to be inside: all are outside, so that the direction of \
             each flow is a guess. Name the networks of the hosts left of the link (`--inside`)",
        ));
    } else if hosts.conflicts > 0 || hosts.turned > 0 {
        w.push(Warning::warning(
            Code::Sides,
            format!(
                "{} flows run between hosts on the same side of the tap, and the side of {} hosts was \
                 corrected after traffic of theirs had been counted: the tap may not be on one link",
                hosts.conflicts, hosts.turned
            ),
        ));
    }
    w.extend(sides_voted(hosts.voted(t.bytes[0] + t.bytes[1])));
    if cut > 0 {
        w.push(Warning::warning(
            Code::SessionsCut,
            format!(
                "{cut} times a session without a rest was cut, for it holds more connections than a quarter \
                 of the model's budget (`--budget`); the pieces are played at times of their own, which adds \
                 or takes bursts as long as they are"
            ),
        ));
    }
    if c.group_flows > 0 {
        w.push(Warning::note(
            Code::GroupAddresses,
            format!(
                "{} flows go to multicast or broadcast addresses; they are replayed across the link",
                c.group_flows
            ),
        ));
    }
    if t.unmodelled_packets > 0 {
        let share = percent(t.unmodelled_bytes as f64, bytes);
        let text = format!(
            "{} packets ({share:.2} % of the bytes) are in no flow, and are not played: {} ICMP, {} \
             fragments without their first, {} of other protocols, {} cut too short",
            t.unmodelled_packets, c.icmp, c.fragments, c.other, c.truncated
        );
        let [up, down] = [0, 1].map(|way| percent(c.unmodelled[way] as f64, t.bytes[way] as f64));
        // One direction may have next to nothing but answers of ICMP.
        if share > 1.0 && up.max(down) > MUCH_UNMODELLED {
            w.push(Warning::warning(
                Code::LoadLeftOut,
                format!(
                    "{up:.0} % of the bytes left to right and {down:.0} % of those right to left are in no flow and are \
                     not played: the traffic of this model is lighter than the trace by as much. A replay of the trace \
                     plays all of it"
                ),
            ));
        }
        w.push(if share > 1.0 {
            Warning::warning(Code::Unmodelled, text)
        } else {
            Warning::note(Code::Unmodelled, text)
        });
    }
    // Each is answered.
    let share = percent(2.0 * c.keep_alives as f64, packets);
    if share > 5.0 {
        w.push(Warning::note(
            Code::KeepAlives,
            format!(
                "{} keep-alive probes of TCP and their answers, {share:.0} % of the packets, are not played",
                c.keep_alives
            ),
        ));
    }
    let late = percent(c.straggler_bytes as f64, bytes);
    let stragglers =
        format!("packets after the end of their connection ({late:.1} % of the bytes, not played)");
    let oddities = [
        (c.strays, "connections without SYN and data"),
        (c.stragglers, &stragglers),
        (c.duplicates, "segments captured twice"),
        (c.jumps, "implausible jumps in sequence numbers"),
    ];
    let text: Vec<String> = oddities
        .iter()
        .filter(|o| o.0 > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    if !text.is_empty() {
        let text = text.join(", ");
        w.push(match late > 1.0 {
            true => Warning::warning(Code::Oddities, text),
            false => Warning::note(Code::Oddities, text),
        });
    }
    if let Some(thinning) = m.provenance.thinning {
        let mut stood = [0.0; 2];
        for s in &m.sessions {
            let [up, down] = s.bytes().map(|b| b as f64);
            stood[0] += s.weight * s.connections().count() as f64;
            stood[1] += s.weight * (up + down);
        }
        let [_, offered, up, down] = c.offered;
        let size = match c.too_long {
            true => "of a size that is read again, 32 MiB of text",
            false => "of the size asked for (`--budget`)",
        };
        let kept = format!(
            "{} of {} sessions are kept, class by class, for the model to be {size}; their weights stand for {:.0} of {:.0} connections and {:.1} of {:.1} MB. Sizes of \
             connections are {:.2} octaves off, those that hold the bytes {:.2}",
            thinning.kept,
            thinning.seen,
            stood[0],
            offered,
            stood[1] / 1e6,
            (up + down) / 1e6,
            thinning.w1_connections,
            thinning.w1_bytes
        );
        w.push(if thinning.w1_connections.max(thinning.w1_bytes) > MUCH {
            Warning::warning(Code::Thinned, kept)
        } else {
            Warning::note(Code::Thinned, kept)
        });
    }
    w
}
