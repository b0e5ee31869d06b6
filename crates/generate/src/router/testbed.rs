//! The three hosts, and the cables between them.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use swell_base::{Code, Time, Warning};
use swell_host::{CABLE, CableEnd, Host, HostConfig, Rights, cable};

use super::seen::Sample;
use super::settings::{BenchError, Settings};

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
            offered: source.out_packets + missed,
            offered_bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            forwarded: out.out_packets + out.not_taken,
            forwarded_bytes: out.out_bytes,
            back: into.out_packets,
            queue_drops: self.router.limit_drops(OUT)?,
            not_taken: missed,
            sink_missed: out.not_taken,
            elsewhere: self.processor.and_then(|processor| {
                elsewhere(&fs::read_to_string("/proc/stat").ok()?, processor)
            }),
        })
    }
}

/// Hundredths of a second that a processor was not in interrupts and the work that follows them, such as forwarding
/// (proc_stat(5)). Such work has no counter of its own if the processor was idle before; but idle time is measured
/// where idle processors have no tick (kernel/time/tick-sched.c, `get_cpu_idle_time_us`).
fn elsewhere(stat: &str, processor: usize) -> Option<u64> {
    let name = format!("cpu{processor} ");
    let fields = stat.lines().find_map(|line| line.strip_prefix(&name))?;
    let fields = fields.split_whitespace().map_while(|f| f.parse().ok());
    let [user, nice, system, idle, iowait, _irq, _softirq, stolen, ..] =
        fields.collect::<Vec<u64>>()[..]
    else {
        return None;
    };
    Some(user + nice + system + idle + iowait + stolen)
}

/// The sink's prefix, divided into `routes` parts.
fn divided(routes: u32) -> Result<impl Iterator<Item = IpNet>, BenchError> {
    if !routes.is_power_of_two() || routes > 1 << 16 {
        return Err(
            format!("{routes} routes do not divide a prefix of 65536 addresses evenly").into(),
        );
    }
    let length = prefix().prefix_len() + routes.trailing_zeros() as u8;
    Ok(prefix().subnets(length)?.map(IpNet::from))
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
            assert!(divided(routes).is_err());
        }
    }

    #[test]
    fn the_line_of_a_processor() {
        let text =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(
            [0, 1, 2].map(|n| elsewhere(text, n)),
            [Some(59), Some(6), None]
        );
        assert_eq!(elsewhere("cpu0 1 2", 0), None);
    }
}
