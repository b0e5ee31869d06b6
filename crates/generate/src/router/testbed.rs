//! The three hosts, and the cables between them.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};

use ipnet::{IpNet, Ipv4Net};
use rustix::net::{AddressFamily, SocketAddrV4, SocketFlags, SocketType, bind, socket_with};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use swell_base::{Code, Time, Warning};

use super::emit::PORT;
use super::{BenchError, Count, Sample, Settings, cpu, kernel};
use crate::Addresses;
use swell_host::sys::batch as sys;
use swell_host::{CABLE, CableEnd, Host, HostConfig, Rights, cable};

/// The source's address.
pub(super) const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 202, 0, 1);
/// The router's addresses towards the source and towards the sink.
const ROUTER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 204, 0, 1), Ipv4Addr::new(10, 204, 0, 2)];
/// The sink's address on its cable.
const SINK: Ipv4Addr = Ipv4Addr::new(10, 203, 0, 1);
/// The router's ends of its cables.
const IN: &str = "in0";
const OUT: &str = "out0";

/// All addresses of the sink: a class B network, as in the paper.
pub(super) fn prefix() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 201, 0, 0), 16)
}

/// Addresses that the sink's connections come from.
pub(super) fn clients() -> Addresses {
    Addresses::parse(&[prefix().to_string()]).unwrap_or_default()
}

pub(super) struct Testbed {
    pub source: Host,
    pub router: Host,
    pub sink: Host,
    /// The router's processor, if it has one to itself.
    processor: Option<usize>,
    pub doubts: Vec<Warning>,
}

impl Testbed {
    /// Creates the hosts. The calling thread, and threads that it starts, leave the last processor to the router.
    pub fn new(rights: &Rights, settings: &Settings) -> Result<Testbed, BenchError> {
        let routes = divided(settings.routes)?;
        let host = |name: &str, address: Ipv4Addr| HostConfig::new(name, [IpAddr::from(address)]);
        let mut router = host("router", ROUTER[0]);
        router.addresses.push(ROUTER[1].into());
        router.sysctls.push(("ipv4/ip_forward".into(), "1".into()));
        let mut sink = host("sink", SINK);
        sink.local = vec![prefix().into()];
        let scaling = if settings.window_scaling { "1" } else { "0" };
        sink.sysctls
            .push(("ipv4/tcp_window_scaling".into(), scaling.into()));
        let make = |config| Host::create(rights, &config).map(|made| made.0);
        let (source, router, sink) = (make(host("source", SOURCE))?, make(router)?, make(sink)?);
        let end = |device, address: Ipv4Addr, prefix: Ipv4Net| CableEnd {
            device,
            address: address.into(),
            prefix: prefix.into(),
        };
        let own = |address| Ipv4Net::new_assert(address, 32);
        cable(
            (&source, end(CABLE, SOURCE, own(SOURCE))),
            (&router, end(IN, ROUTER[0], prefix())),
        )?;
        // The sink can reach only the source, and the cable itself gives the router a route to `SINK` alone. So the
        // sink's other addresses are reached only through the routing table.
        cable(
            (&router, end(OUT, ROUTER[1], own(SOURCE))),
            (&sink, end(CABLE, SINK, own(SINK))),
        )?;
        let via = SINK.into();
        router.add_routes(OUT, routes, via, ROUTER[1].into())?;
        source.send_single_packets(CABLE)?;
        if let Some(bucket) = &settings.limit {
            router.limit(OUT, bucket)?;
        }
        let mut bed = Testbed {
            source,
            router,
            sink,
            processor: None,
            doubts: Vec::new(),
        };
        bed.separate();
        Ok(bed)
    }

    /// Gives the router a processor of its own, if the machine has enough of them and permits it.
    fn separate(&mut self) {
        let mut tell = |why: String| {
            self.doubts.push(Warning::warning(
                Code::RouterNotSeparate,
                format!("{why}: the router's processor time cannot be separated from the hosts'"),
            ));
        };
        let allowed = match sched_getaffinity(None) {
            Ok(set) => set,
            Err(error) => return tell(format!("processors cannot be chosen ({error})")),
        };
        // Packet steering is configured with a 32-bit mask.
        let mine: Vec<usize> = (0..32).filter(|&cpu| allowed.is_set(cpu)).collect();
        let [others @ .., last] = mine.as_slice() else {
            return tell("no processor is known".into());
        };
        let Some(&first) = others.first() else {
            return tell("there is one processor".into());
        };
        let mut set = CpuSet::new();
        others.iter().for_each(|&cpu| set.set(cpu));
        if let Err(error) = sched_setaffinity(None, &set) {
            return tell(format!("processors cannot be chosen ({error})"));
        }
        let steered = [(&self.router, IN, *last), (&self.router, OUT, *last)]
            .into_iter()
            .chain([(&self.source, CABLE, first), (&self.sink, CABLE, first)]);
        for (host, device, cpu) in steered {
            if let Err(error) = host.receive_on(device, 1 << cpu) {
                return tell(error.to_string());
            }
        }
        self.processor = Some(*last);
    }

    /// Opens taps on the source's and the sink's cable.
    pub fn taps(&self) -> Result<[OwnedFd; 2], BenchError> {
        let tap = |host: &Host| -> Result<OwnedFd, BenchError> {
            let index = host.device_index(CABLE)?;
            let tap = host
                .enter(|| sys::tap(index))
                .map_err(kernel("enter a host"))?;
            let tap = tap.map_err(kernel("tap a cable"))?;
            sys::roomy(tap.as_fd());
            Ok(tap)
        };
        Ok([tap(&self.source)?, tap(&self.sink)?])
    }

    /// Reads all counters.
    pub fn sample(&self, at: Time) -> Result<Sample, BenchError> {
        let source = self.source.counters(CABLE)?;
        let (into, out) = (self.router.counters(IN)?, self.router.counters(OUT)?);
        // Packets that the router dropped on receipt are not in the source's count of sent packets. Their mean size
        // is taken to be that of the others.
        let (taken, missed) = (source.out_packets.max(1), source.not_taken);
        let bytes = u128::from(source.out_bytes) * u128::from(taken + missed) / u128::from(taken);
        Ok(Sample {
            at,
            offered: Count {
                packets: source.out_packets + missed,
                bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            },
            forwarded: Count {
                packets: out.out_packets + out.not_taken,
                bytes: out.out_bytes,
            },
            back: Count {
                packets: into.out_packets,
                bytes: into.out_bytes,
            },
            queue_drops: self.router.limit_drops(OUT)?,
            not_taken: missed,
            sink_missed: out.not_taken,
            processor: self.processor.and_then(cpu::read),
        })
    }
}

/// The sink's prefix, divided into `routes` parts.
fn divided(routes: u32) -> Result<impl Iterator<Item = IpNet>, BenchError> {
    let wrong = || BenchError::Routes(routes);
    if !routes.is_power_of_two() || routes > 1 << 16 {
        return Err(wrong());
    }
    let length = prefix().prefix_len() + routes.trailing_zeros() as u8;
    let parts = prefix().subnets(length).map_err(|_| wrong())?;
    Ok(parts.map(IpNet::from))
}

/// A socket that receives packets to the discard port of any address.
pub(super) fn discard() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    sys::roomy(socket.as_fd());
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT))?;
    Ok(socket)
}

/// Datagrams dropped because the socket's buffer was full.
pub(super) fn socket_drops(socket: &OwnedFd) -> u64 {
    sys::drops(socket.as_fd()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_divides_the_prefix() {
        for (routes, length) in [(1, 16), (32, 21), (1_024, 26), (32_768, 31), (65_536, 32)] {
            let parts: Vec<IpNet> = divided(routes).unwrap().collect();
            assert_eq!(parts.len(), routes as usize);
            assert!(parts.iter().all(|p| p.prefix_len() == length));
            let whole = IpNet::aggregate(&parts);
            assert_eq!(whole, [IpNet::from(prefix())]);
        }
        for routes in [0, 3, 131_072] {
            assert!(matches!(divided(routes), Err(BenchError::Routes(_))));
        }
    }
}
