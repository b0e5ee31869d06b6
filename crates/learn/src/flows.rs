//! Learns a flow-level model from flow records.

use std::net::IpAddr;

use swell_base::{Code, Warning};
use swell_capture::flow::{self, EndReason, FlowRecord, Layer, Times};
use swell_traffic::Provenance;
use swell_traffic::flowlevel::{
    Configurator, ConfigureError, FlowModel, Network, Options, Record, Uniflow,
};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of the IPv4 and IPv6 headers without options (RFC 791, RFC 8200), and of TCP and UDP headers (RFC
/// 9293, RFC 768).
const IP_HEADERS: [u32; 2] = [20, 40];
const TCP_HEADER: u32 = 20;
const UDP_HEADER: u32 = 8;
/// Addresses and type of an Ethernet frame (IEEE 802.3), which link-layer byte counts include.
const ETHERNET_HEADER: u32 = 14;
/// A frame without payload may be padded to this length (IEEE 802.3: 64 bytes, less the check sequence, which captures do
/// not have).
const SHORTEST_FRAME: u64 = 60;
/// Packet size assumed for records without packet counts.
const MTU: u64 = 1500;

/// Makes a [`FlowModel`] from flow records of any exporter. It normalizes addresses, byte counts and
/// sampling, and passes the records to [`swell_traffic::flowlevel`].
///
/// ```
/// use swell_capture::flow::FlowReader;
/// use swell_learn::FlowLearner;
/// use swell_traffic::flowlevel::Options;
///
/// let table = "start,end,src,src_port,dst,dst_port,protocol,packets,bytes,tcp_flags
/// 0.0,0.5,192.0.2.1,80,10.0.0.1,4000,6,10,10400,0x1b
/// 2.0,2.5,192.0.2.1,80,10.0.0.1,4001,6,20,20800,0x1b
/// ";
/// let mut reader = FlowReader::new(table.as_bytes())?;
/// let mut learner = FlowLearner::new(Options::default());
/// while let Some(record) = reader.next_record()? {
///     learner.push(&record);
/// }
/// let model = learner.finish("table", Default::default())?;
/// assert_eq!((model.tcp.down.count(), model.tcp.down.sum()), (2, 30_000));
/// assert_eq!(model.tcp.gaps.sum(), 2_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FlowLearner {
    configurator: Configurator,
    doubts: Vec<Warning>,
    records: u64,
    without_packets: u64,
    without_times: u64,
    scaled: u64,
    ingress: u64,
    egress: u64,
}

impl FlowLearner {
    /// Creates a learner that has seen no records.
    pub fn new(options: Options) -> FlowLearner {
        FlowLearner {
            configurator: Configurator::new(options),
            doubts: Vec::new(),
            records: 0,
            without_packets: 0,
            without_times: 0,
            scaled: 0,
            ingress: 0,
            egress: 0,
        }
    }

    /// Adds a record.
    pub fn push(&mut self, record: &FlowRecord) {
        self.records += 1;
        self.without_packets += u64::from(record.packets == 0 && record.bytes > 0);
        self.without_times += u64::from(record.times == Times::Export);
        self.scaled += u64::from(record.sampling.scaled && record.sampling.interval <= 1.0);
        self.ingress += u64::from(record.direction == flow::FlowDirection::Ingress);
        self.egress += u64::from(record.direction == flow::FlowDirection::Egress);
        self.configurator.add(&convert(record));
    }

    /// Adds a warning from the reader of the records.
    pub fn doubt(&mut self, warning: Warning) {
        self.doubts.push(warning);
    }

    /// Returns the model of all records added.
    ///
    /// # Errors
    /// If there was no traffic to model.
    pub fn finish(
        mut self,
        name: &str,
        provenance: Provenance,
    ) -> Result<FlowModel, ConfigureError> {
        let n = self.records;
        let mut doubt = |many: u64, code: Code, what: &str| {
            if many > 0 {
                let message = format!("{many} of {n} records {what}");
                self.doubts.push(Warning::warning(code, message));
            }
        };
        doubt(
            self.without_packets,
            Code::NoPacketCounts,
            "have no packet count: they are taken to be of packets of 1500 bytes",
        );
        doubt(
            self.without_times,
            Code::NoTimes,
            "have no times of their own: they are placed when they were exported, and gaps between \
             connections are those between export messages",
        );
        doubt(
            self.scaled,
            Code::Scaled,
            "were multiplied by their collector, which does not say by how much: sampled flows \
             cannot be told from others, and flows without a sampled packet are missing",
        );
        if self.ingress > 0 && self.egress > 0 {
            self.doubts.push(Warning::note(
                Code::BothInterfaces,
                format!(
                    "{} records were made where packets came in and {} where they went out: if \
                     packets were recorded at both, they are counted twice",
                    self.ingress, self.egress
                ),
            ));
        }
        let mut model = self.configurator.finish(name, provenance)?;
        model.warnings.splice(0..0, self.doubts);
        Ok(model)
    }
}

/// Converts a record to the form that the flow-level model takes.
fn convert(r: &FlowRecord) -> Record {
    // Scaled counters are divided again: the number of sampled packets tells how reliable the record is.
    let sampling = r.sampling.interval.max(1.0);
    let counted = |n: u64| r.sampling.selected(n);
    let packets = |packets: u64, bytes: u64| match counted(packets) {
        0 => counted(bytes).div_ceil(MTU),
        n => n,
    };
    let ip = IP_HEADERS[usize::from(r.src.is_ipv6())];
    let transport = match r.protocol {
        TCP => TCP_HEADER,
        UDP => UDP_HEADER,
        _ => 0,
    };
    // Nothing is inferred where the record says it.
    let payload = r.payload.filter(|_| sampling <= 1.0);
    let header = match r.layer {
        _ if payload.is_some() => 0,
        Layer::Network => ip + transport,
        Layer::Link => ETHERNET_HEADER + ip + transport,
        Layer::Payload => 0,
    };
    // Frames of TCP without payload may be shorter than frames can be.
    let frames = r.layer == Layer::Link && r.protocol == TCP;
    let bytes = |n: u64, all: u64| match frames && n > 0 && all <= n.saturating_mul(SHORTEST_FRAME)
    {
        true => counted(all).min(counted(n).saturating_mul(u64::from(header))),
        false => counted(all),
    };
    Record {
        source: number(r.src),
        destination: number(r.dst),
        source_port: r.src_port,
        destination_port: r.dst_port,
        protocol: r.protocol,
        header,
        forward: Uniflow {
            packets: packets(r.packets, r.bytes),
            bytes: payload.map_or_else(|| bytes(r.packets, r.bytes), |p| p[0]),
            flags: r.tcp_flags,
            first: r.first,
            last: r.last,
        },
        reverse: r.reverse.map(|back| Uniflow {
            packets: packets(back.packets, back.bytes),
            bytes: payload.map_or_else(|| bytes(back.packets, back.bytes), |p| p[1]),
            flags: back.tcp_flags,
            first: back.first,
            last: back.last.max(back.first),
        }),
        continues: r.end == EndReason::ActiveTimeout,
        sampling,
    }
}

/// A network of clients, by the address of one of its hosts and the length of its prefix
/// ([`Options::clients`]).
pub fn network(address: IpAddr, prefix: u32) -> Network {
    // IPv4 addresses are the last 32 of 128 bits.
    let before = if address.is_ipv4() { 96 } else { 0 };
    Network {
        host: number(address),
        prefix: prefix.saturating_add(before).min(128),
    }
}

/// An address as a number, with IPv4 as IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2).
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_capture::flow::{Reverse, Sampling};

    fn record() -> FlowRecord {
        FlowRecord {
            first: 0,
            last: 1_000,
            packets: 10,
            bytes: 5_000,
            protocol: TCP,
            src_port: 80,
            dst_port: 4_000,
            tcp_flags: Some(0x1b),
            ..FlowRecord::BLANK
        }
    }

    #[test]
    fn headers_are_those_of_the_layer_that_was_counted() {
        let v6 = IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]);
        let with = |protocol, layer, src| {
            convert(&FlowRecord {
                protocol,
                layer,
                src,
                ..record()
            })
            .header
        };
        let v4 = record().src;
        assert_eq!(with(TCP, Layer::Network, v4), 40);
        assert_eq!(with(TCP, Layer::Network, v6), 60);
        assert_eq!(with(UDP, Layer::Network, v4), 28);
        assert_eq!(with(TCP, Layer::Link, v4), 54);
        assert_eq!(with(UDP, Layer::Payload, v6), 0);
    }

    /// Frames of acknowledgements are padded to 60 bytes, of which 54 are headers. Longer ones may have payload, and those
    /// of datagrams always do.
    #[test]
    fn padding_of_frames_is_no_payload() {
        let payload = |protocol, layer, packets, bytes| {
            let read = convert(&FlowRecord {
                protocol,
                layer,
                packets,
                bytes,
                ..record()
            });
            read.forward.bytes - u64::from(read.header) * read.forward.packets
        };
        assert_eq!(payload(TCP, Layer::Link, 100, 6_000), 0);
        assert_eq!(payload(TCP, Layer::Link, 100, 5_500), 0);
        assert_eq!(payload(TCP, Layer::Link, 100, 6_001), 601);
        assert_eq!(payload(TCP, Layer::Network, 100, 6_000), 2_000);
        assert_eq!(payload(UDP, Layer::Link, 100, 6_000), 1_800);
    }

    /// A request of 500 bytes, and the padded acknowledgements of a download.
    #[test]
    fn padding_beside_payload_is_no_payload_either() {
        let learnt = |packets: u64, bytes: u64, back: u64| {
            let mut learner = FlowLearner::new(Options::default());
            learner.push(&FlowRecord {
                src_port: 4_000,
                dst_port: 80,
                layer: Layer::Link,
                packets,
                bytes,
                reverse: Some(Reverse {
                    first: 0,
                    last: 1_000,
                    packets: 700,
                    bytes: 700 * 54 + back,
                    tcp_flags: Some(0x1b),
                }),
                ..record()
            });
            learner.finish("x", Provenance::default()).unwrap().tcp
        };
        let download = learnt(350, 350 * 54 + 500 + 349 * 6, 1_000_000);
        assert_eq!((download.up.sum(), download.down.sum()), (500, 1_000_000));
        // Where neither side sends much, small segments may be data.
        let talk = learnt(350, 350 * 54 + 2_594, 700 * 7);
        assert_eq!((talk.up.sum(), talk.down.sum()), (2_594, 4_900));
    }

    #[test]
    fn payload_that_a_record_has_is_taken() {
        let whole = FlowRecord {
            payload: Some([500, 9_000]),
            reverse: Some(Reverse {
                first: 0,
                last: 1_000,
                packets: 12,
                bytes: 9_492,
                tcp_flags: Some(0x1b),
            }),
            ..record()
        };
        let mut learner = FlowLearner::new(Options::default());
        learner.push(&FlowRecord {
            src_port: 4_000,
            dst_port: 80,
            ..whole
        });
        let model = learner.finish("x", Provenance::default()).unwrap();
        assert_eq!((model.tcp.up.sum(), model.tcp.down.sum()), (500, 9_000));
    }

    #[test]
    fn equal_numbers_of_different_families_are_different_hosts() {
        let v4 = number(IpAddr::from([0, 0, 0, 1]));
        let v6 = number(IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]));
        assert_ne!(v4, v6);
    }

    #[test]
    fn counters_that_a_collector_multiplied_are_those_of_samples_again() {
        let multiplied = FlowRecord {
            packets: 30,
            bytes: 15_000,
            sampling: Sampling {
                interval: 10.0,
                scaled: true,
                ..Sampling::UNKNOWN
            },
            ..record()
        };
        let read = convert(&multiplied);
        assert_eq!((read.forward.packets, read.forward.bytes), (3, 1_500));
        assert_eq!(read.sampling, 10.0);
        let unknown = Sampling {
            interval: 1.0,
            ..multiplied.sampling
        };
        let whole = convert(&FlowRecord {
            sampling: unknown,
            ..multiplied
        });
        assert_eq!((whole.forward.packets, whole.sampling), (30, 1.0));
    }

    #[test]
    fn what_a_record_lacks_is_told() {
        let mut learner = FlowLearner::new(Options::default());
        learner.push(&FlowRecord {
            packets: 0,
            times: Times::Export,
            sampling: Sampling {
                scaled: true,
                ..Sampling::UNKNOWN
            },
            direction: flow::FlowDirection::Ingress,
            ..record()
        });
        learner.push(&FlowRecord {
            direction: flow::FlowDirection::Egress,
            src_port: 81,
            reverse: Some(Reverse {
                first: 5,
                last: 2,
                packets: 3,
                bytes: 120,
                tcp_flags: None,
            }),
            ..record()
        });
        let model = learner.finish("x", Provenance::default()).unwrap();
        for code in [
            Code::NoPacketCounts,
            Code::NoTimes,
            Code::Scaled,
            Code::BothInterfaces,
        ] {
            assert!(model.warnings.iter().any(|w| w.code == code), "{code}");
        }
        // 5000 bytes are four packets of at most 1500 bytes: 160 bytes of headers.
        assert_eq!(model.tcp.down.sum(), 5_000 - 160 + 5_000 - 400);
    }
}
