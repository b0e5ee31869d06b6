//! A flow exporter on a link: reports flow records like a router with NetFlow or IPFIX.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Dur, Packet, Time};
use swell_capture::Transport;
use swell_capture::flow::{FlowRecord, IpfixWriter, Metering, MeteringProcess, PacketSampling};
use swell_world::{Parties, Tap};

use crate::file::findings::Findings;
use crate::packets::{SharedHeaders, beside};

/// Width of the bins in which an exporter counts bytes.
pub const BIN: Dur = Dur::from_millis(1);

/// The settings of a flow exporter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Exporter {
    /// It sees one packet in so many, at random. Default: 1, every packet.
    pub sample: u32,
    /// A flow that goes on is reported after so long.
    pub active: Dur,
    /// A flow that is silent is over after so long.
    pub inactive: Dur,
}

impl Default for Exporter {
    fn default() -> Exporter {
        Exporter {
            sample: 1,
            active: Dur::from_secs(60),
            inactive: Dur::from_secs(15),
        }
    }
}

/// Minimum length of a time-out. Records of shorter flows than a bin of the exporter would be those of packets.
const SHORTEST: Dur = BIN;

impl Exporter {
    /// Rejects impossible settings; `key` makes their keys.
    pub(crate) fn check(&self, key: impl Fn(&str) -> String, found: &mut Findings) {
        if self.sample == 0 {
            found.add(
                key("sample"),
                "one packet in 0 is none",
                "write 1 for every packet, or leave it out",
            );
        }
        for (name, length) in [("active", self.active), ("inactive", self.inactive)] {
            if length < SHORTEST {
                found.add(
                    key(name),
                    format!("a time-out of {length} makes every packet a flow"),
                    "write 1ms or more; 60s and 15s are usual",
                );
            }
        }
    }
}

/// Ground truth for one direction of a connection, from its packets; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrueFlow {
    /// Its addresses and ports, source and destination.
    pub ends: [(IpAddr, u16); 2],
    /// Times of the first and of the last packet.
    pub packets: [i64; 2],
    /// Times of the first and of the last packet with payload, if any.
    pub payload: Option<[i64; 2]>,
}

/// The traffic of a link as its exporter reports it, with the ground truth from its packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// The link.
    pub link: Arc<str>,
    /// Flow records, in the order of their ends.
    pub records: Vec<FlowRecord>,
    /// Ground truth for the same flows.
    pub flows: Vec<TrueFlow>,
    /// Bytes of both directions in each bin of [`BIN`].
    pub bytes: Vec<u32>,
}

/// Writes the records of every link as IPFIX to this file or, with several links, to one file for each link beside it.
/// Files are written atomically.
pub(crate) fn keep(all: &[Arc<Exported>], file: &Path) -> io::Result<()> {
    for exported in all {
        let file = match all.len() {
            1 => file.to_owned(),
            _ => beside(file, &exported.link),
        };
        fs::create_dir_all(file.parent().unwrap_or(Path::new("")))?;
        let partial = file.with_extension("partial");
        let mut writer = IpfixWriter::new(fs::File::create(&partial)?);
        let written = exported.records.iter().try_for_each(|r| writer.record(r));
        let written = written.and_then(|()| writer.finish());
        written.map_err(io::Error::other)?;
        fs::rename(&partial, &file)?;
    }
    Ok(())
}

/// An exporter while it observes a link. Clones share their state.
#[derive(Clone)]
pub(crate) struct Exporting {
    link: Arc<str>,
    state: Arc<Mutex<State>>,
}

struct State {
    metering: MeteringProcess,
    done: Vec<FlowRecord>,
    headers: SharedHeaders,
    /// By workload, connection and direction.
    flows: BTreeMap<(u32, u32, bool), TrueFlow>,
    bytes: Vec<u32>,
}

impl Exporting {
    /// An exporter on a link. `seed` selects the sampled packets.
    pub fn new(
        settings: &Exporter,
        link: &Arc<str>,
        headers: SharedHeaders,
        seed: u64,
    ) -> Exporting {
        let metering = Metering {
            active_timeout: settings.active,
            inactive_timeout: settings.inactive,
            sampling: match settings.sample {
                0 | 1 => PacketSampling::All,
                interval => PacketSampling::Random { interval, seed },
            },
            ..Metering::default()
        };
        Exporting {
            link: Arc::clone(link),
            state: Arc::new(Mutex::new(State {
                metering: MeteringProcess::new(metering),
                done: Vec::new(),
                headers,
                flows: BTreeMap::new(),
                bytes: Vec::new(),
            })),
        }
    }

    /// Flushes all flows and returns everything that was exported.
    pub fn finish(self) -> Exported {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = std::mem::take(&mut state.done);
        state.metering.finish(&mut records);
        records.sort_by_key(|r| r.last);
        Exported {
            link: self.link,
            records,
            flows: std::mem::take(&mut state.flows).into_values().collect(),
            bytes: std::mem::take(&mut state.bytes),
        }
    }
}

impl Tap for Exporting {
    fn packet(&mut self, at: Time, parties: &Parties, to_server: bool, packet: &Packet) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        let (network, transport) = state
            .headers
            .lock()
            .describe(at, parties, to_server, packet);
        let (ports, protocol, flags) = match transport {
            Transport::Tcp(tcp) => ([tcp.src_port, tcp.dst_port], 6, Some(packet.seg.flags.0)),
            Transport::Udp {
                src_port, dst_port, ..
            } => ([src_port, dst_port], 17, None),
            _ => return,
        };
        let bin = (at.as_nanos() / BIN.as_nanos()) as usize;
        if state.bytes.len() <= bin {
            state.bytes.resize(bin + 1, 0);
        }
        state.bytes[bin] += u32::from(packet.size);
        let nanos = i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        let key = (parties.workload, parties.conn.0, to_server);
        let flow = state.flows.entry(key).or_insert(TrueFlow {
            ends: [(network.from, ports[0]), (network.to, ports[1])],
            packets: [nanos; 2],
            payload: None,
        });
        flow.packets[1] = nanos;
        if packet.seg.len > 0 {
            flow.payload = Some([flow.payload.map_or(nanos, |p| p[0]), nanos]);
        }
        let seen = FlowRecord {
            first: nanos,
            last: nanos,
            src: network.from,
            src_port: ports[0],
            dst: network.to,
            dst_port: ports[1],
            protocol,
            packets: 1,
            bytes: u64::from(packet.size),
            tcp_flags: flags,
            ..FlowRecord::BLANK
        };
        state.metering.packet(seen, &mut state.done);
    }
}
