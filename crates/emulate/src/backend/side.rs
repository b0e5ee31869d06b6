//! One side of a socket carrier, in a host of the run.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use ipnet::IpNet;

use swell_host::DEVICE_NAME;
use swell_sockets::{InNamespace, SideConfig};

/// The sockets of the host whose network namespace is `network`, with addresses of `prefixes` (IPv4 and IPv6). Must
/// be called on the thread that will create the sockets.
pub(super) fn sockets(network: OwnedFd, prefixes: [IpNet; 2]) -> io::Result<SideConfig> {
    let home = File::open("/proc/thread-self/ns/net")?;
    let [ipv4, ipv6] = prefixes;
    Ok(SideConfig {
        sockets: Box::new(InNamespace::new(network, home.into())),
        ipv4: ipv4.into(),
        ipv6: Some(ipv6.into()),
        device: Some(DEVICE_NAME.into()),
    })
}
