//! Settings for a host that forwards packets between cables.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;

use ipnet::IpNet;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};

use super::error::{During, Error};
use super::netlink::{Netlink, TokenBucket};
use super::sys::batch::tap;
use super::{Host, Program};

/// Traffic counters of a device since it was created: frames, and bytes including link-layer headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames sent.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Frames that the other end dropped because its backlog exceeded `net.core.netdev_max_backlog`.
    pub not_taken: u64,
}

impl Host {
    /// Adds a route for each of the prefixes to the neighbour `via` on a cable.
    ///
    /// # Errors
    /// If there is no such cable, or the kernel refuses a route.
    pub fn add_routes(
        &self,
        device: &str,
        prefixes: impl IntoIterator<Item = IpNet>,
        via: IpAddr,
        source: IpAddr,
    ) -> Result<(), Error> {
        self.over(device, "add routes", |netlink, index| {
            let mut prefixes = prefixes.into_iter();
            prefixes.try_for_each(|p| netlink.add_neighbour_route(index, p, via, source))
        })
    }

    /// Limits the rate of packets that leave by a cable.
    ///
    /// # Errors
    /// If there is no such cable, or the kernel has no `tbf`.
    pub fn limit(&self, device: &str, bucket: &TokenBucket) -> Result<(), Error> {
        self.over(
            device,
            "limit a cable (kernel module sch_tbf)",
            |netlink, index| netlink.add_token_bucket(index, bucket),
        )
    }

    /// Packets dropped by the rate limit of a cable.
    ///
    /// # Errors
    /// If there is no such cable.
    pub fn limit_drops(&self, device: &str) -> Result<u64, Error> {
        self.over(device, "read what a queue dropped", Netlink::queue_drops)
    }

    /// A socket that receives copies of the IPv4 packets that cross a cable (`sys::batch::Batch`).
    ///
    /// # Errors
    /// If there is no such cable, or the kernel refuses.
    pub fn tap(&self, device: &str) -> Result<OwnedFd, Error> {
        let step = "tap a cable";
        let index = self.over(device, step, |_, index| Ok(index))?;
        let made = self.enter(|| tap(index));
        made.and_then(|tap| tap).during(&self.name, step)
    }

    /// Traffic counters of a cable.
    ///
    /// # Errors
    /// If there is no such cable.
    pub fn counters(&self, device: &str) -> Result<Counters, Error> {
        let s = self.over(device, "read counters", Netlink::statistics)?;
        Ok(Counters {
            out_packets: s.tx_packets,
            out_bytes: s.tx_bytes,
            not_taken: s.tx_dropped,
        })
    }

    /// Disables super-packets on a cable, so that nothing larger than a packet of the wire is sent. Otherwise the
    /// kernel sends super-packets of up to 64 KiB, which a queue counts as one packet.
    ///
    /// # Errors
    /// If there is no such cable, or the kernel refuses.
    pub fn send_single_packets(&self, device: &str) -> Result<(), Error> {
        self.over(device, "have single packets sent", |netlink, index| {
            let one = vec![LinkAttribute::GsoMaxSegs(1)];
            netlink.set_link(index, LinkFlags::empty(), one)
        })
    }

    /// Sets the processors that handle packets arriving by a cable, as a bit mask starting with processor 0
    /// (Documentation/networking/scaling.rst, "RPS"). It does not matter which processor sent them.
    ///
    /// # Errors
    /// If the kernel refuses, or is built without RPS.
    pub fn receive_on(&self, device: &str, processors: u32) -> Result<(), Error> {
        // The device is visible only in the /sys of a program inside the host.
        let file = format!("/sys/class/net/{device}/queues/rx-0/rps_cpus");
        let command = format!("echo {processors:x} > {file}");
        let mut shell = self.spawn(Program::new(["sh", "-c", &command]))?;
        let status = shell.wait().during(&self.name, "wait for a shell")?;
        if status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!("{file} cannot be written")))
            .during(&self.name, "choose who receives")
    }

    fn over<R>(
        &self,
        device: &str,
        step: &str,
        work: impl FnOnce(&mut Netlink, u32) -> io::Result<R>,
    ) -> Result<R, Error> {
        let mut netlink = self.netlink.lock().unwrap_or_else(PoisonError::into_inner);
        let index = netlink.index(device).during(&self.name, step)?;
        work(&mut netlink, index).during(&self.name, step)
    }
}
