//! Configuration of a host.

use super::device::DeviceConfig;
use super::error::Error;
use ipnet::IpNet;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

/// All settings of a host that are chosen before it is created.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its name: the output of `hostname` inside, and one of the names that resolve there.
    pub name: String,
    /// Its own addresses, at least one. The first of each family is the source address of its packets.
    pub addresses: Vec<IpAddr>,
    /// Prefixes of which every address belongs to the host, without configuring each address (`ip route add local
    /// PREFIX dev lo`). One namespace can thus hold a thousand nodes.
    pub local: Vec<IpNet>,
    /// The names that resolve inside, and no others.
    pub names: Vec<(String, IpAddr)>,
    /// The congestion control of every connection through the device. It is always set, because the kernel's default
    /// differs between machines.
    pub congestion_control: String,
    /// The device.
    pub device: DeviceConfig,
    /// Files below `/proc/sys/net` and the values to write to them, for example `("ipv4/tcp_rmem", "4096 131072
    /// 33554432")`.
    pub sysctls: Vec<(String, String)>,
    /// Minimum for the maximum size of TCP buffers, in bytes. It applies if the machine's own limits (the last
    /// numbers of `tcp_rmem` and `tcp_wmem`, usually 4 and 6 MB) are lower. The buffer matters because one connection
    /// carries at most one buffer per round trip.
    pub tcp_buffers: u64,
    /// The executable that calls [`helper_main`](super::helper_main) first of all. This is the running executable,
    /// unless the process belongs to another program, such as a Python interpreter.
    pub helper: PathBuf,
}

/// nsswitch.conf(5) keeps the C library from asking a name server at all. Other programs that read this file are
/// refused at once on the loopback, where nothing listens.
pub(super) const RESOLV_FILE: &str =
    "# Names are in /etc/hosts; there is no name server.\nnameserver 127.0.0.1\n";

/// The line of nsswitch.conf(5) that names the sources of host names.
pub(super) const NSSWITCH_LINE: &str = "hosts: files\n";

impl HostConfig {
    /// A host with one name and these addresses, and common defaults: CUBIC, an MTU of 1500 bytes.
    pub fn new(name: impl Into<String>, addresses: impl Into<Vec<IpAddr>>) -> HostConfig {
        HostConfig {
            name: name.into(),
            addresses: addresses.into(),
            local: Vec::new(),
            names: Vec::new(),
            congestion_control: "cubic".into(),
            device: DeviceConfig::default(),
            sysctls: Vec::new(),
            tcp_buffers: 0,
            helper: PathBuf::from("/proc/self/exe"),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |reason: String| {
            Err(Error::Config {
                host: self.name.clone(),
                reason,
            })
        };
        // sethostname(2) takes 64 bytes; a hosts file is split at white space.
        let names = self.names.iter().map(|(name, _)| name);
        for name in names.chain([&self.name]) {
            if name.is_empty() || name.len() > 64 {
                return wrong(format!("the name `{name}` is not of 1 to 64 bytes"));
            }
            if name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#') {
                return wrong(format!("the name {name:?} cannot stand in a hosts file"));
            }
        }
        if self.addresses.is_empty() {
            return wrong("it has no address".into());
        }
        if self.device.mtu < 1280 {
            return wrong(format!(
                "an MTU of {} bytes is below the 1280 that IPv6 needs",
                self.device.mtu
            ));
        }
        for (path, _) in &self.sysctls {
            if path.split('/').any(|part| part == ".." || part.is_empty()) {
                return wrong(format!("`{path}` is not a path below /proc/sys/net"));
            }
        }
        Ok(())
    }

    /// The first address of a family, the source address of packets unless the program binds another.
    pub(super) fn source(&self, v6: bool) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|a| a.is_ipv6() == v6)
    }

    pub(super) fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
        let own = self.addresses.iter().map(|a| (&self.name, a));
        for (name, address) in own.chain(self.names.iter().map(|(n, a)| (n, a))) {
            let _ = writeln!(text, "{address} {name}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_break_the_hosts_file_is_refused() {
        let mut config = HostConfig::new("client", ["10.0.0.1".parse().unwrap()]);
        assert!(config.check().is_ok());
        config.names.push(("a b".into(), config.addresses[0]));
        assert!(config.check().is_err());
    }
}
