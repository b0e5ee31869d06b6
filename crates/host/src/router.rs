//! What a host needs that forwards packets between cables.

use std::io;
use std::net::IpAddr;
use std::sync::PoisonError;

use ipnet::IpNet;
use netlink_packet_route::link::{LinkAttribute, LinkFlags};

use super::error::{During, Error};
use super::netlink::{Netlink, TokenBucket};
use super::{Host, Program};

/// What a device has carried since it was made: frames, and their bytes with the headers of the link layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub in_packets: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Frames sent.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
    /// Frames that the other end did not take: it had more waiting than `net.core.netdev_max_backlog`.
    pub not_taken: u64,
}

impl Host {
    /// Sends what is for each of the prefixes to the neighbour `via` on a cable.
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

    /// Limits what leaves by a cable.
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

    /// Packets that the limit of a cable has dropped.
    ///
    /// # Errors
    /// If there is no such cable.
    pub fn limit_drops(&self, device: &str) -> Result<u64, Error> {
        self.over(device, "read what a queue dropped", Netlink::queue_drops)
    }

    /// The number of a device.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn device_index(&self, device: &str) -> Result<u32, Error> {
        self.over(device, "find a device", |_, index| Ok(index))
    }

    /// What a cable has carried.
    ///
    /// # Errors
    /// If there is no such cable.
    pub fn counters(&self, device: &str) -> Result<Counters, Error> {
        let s = self.over(device, "read counters", Netlink::statistics)?;
        Ok(Counters {
            in_packets: s.rx_packets,
            in_bytes: s.rx_bytes,
            out_packets: s.tx_packets,
            out_bytes: s.tx_bytes,
            not_taken: s.tx_dropped,
        })
    }

    /// Nothing larger than a packet of the wire is sent through a cable; else the kernel sends super-packets of up to
    /// 64 KiB, which a queue counts as one.
    ///
    /// # Errors
    /// If there is no such cable, or the kernel refuses.
    pub fn send_single_packets(&self, device: &str) -> Result<(), Error> {
        self.over(device, "have single packets sent", |netlink, index| {
            let one = vec![LinkAttribute::GsoMaxSegs(1)];
            netlink.set_link(index, LinkFlags::empty(), one)
        })
    }

    /// What comes in by a cable is handled by these processors, bit by bit from the lowest
    /// (Documentation/networking/scaling.rst, "RPS"), wherever it was sent.
    ///
    /// # Errors
    /// Where the kernel refuses, or is built without it.
    pub fn receive_on(&self, device: &str, processors: u32) -> Result<(), Error> {
        // The device is to be seen in the /sys of a program of the host alone.
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
