//! The network of a host: its device and its addresses.

use swell_host::DEVICE_NAME;
use swell_host::sys::features;

use super::*;

/// A virtio header does not describe TCP in a tunnel, nor SCTP. The device must not be given such super-packets.
pub(super) fn tunnels_are_segmented_by_the_kernel(rights: &Rights) {
    let (host, _device) = Host::create(rights, &client()).expect("a host");
    let active = || features::active(DEVICE_NAME);
    let active = host.enter(active).expect("a thread").expect("features");
    assert!(
        active.iter().any(|f| f == "tx-tcp-segmentation"),
        "{active:?}"
    );
    let wrong = |f: &&String| {
        let words = ["gre", "ipxip", "udp_tnl", "tunnel", "sctp-seg", "esp-seg"];
        f.starts_with("tx-") && words.iter().any(|w| f.contains(w))
    };
    let wrong: Vec<&String> = active.iter().filter(wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

pub(super) fn a_prefix_is_a_hundred_nodes(rights: &Rights) {
    let (mut nodes, mut servers) = (client(), server());
    nodes.local = ["10.1.0.0/16", "fd01::/64"]
        .map(|p| p.parse().expect("a prefix"))
        .into();
    servers.local = ["10.2.0.0/16", "fd02::/64"]
        .map(|p| p.parse().expect("a prefix"))
        .into();
    let (a, b, _ferry) = pair(rights, &nodes, &servers);
    let listener = b
        .enter(|| TcpListener::bind("[::]:80"))
        .expect("enter")
        .expect("listen");
    for k in 1..=50u8 {
        for (from, to) in [
            (format!("10.1.0.{k}"), format!("10.2.0.{k}")),
            (format!("fd01::{k}"), format!("fd02::{k}")),
        ] {
            let connection = a
                .enter(|| connect_from(ip(&from), SocketAddr::new(ip(&to), 80)))
                .expect("enter")
                .unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
            let (accepted, peer) = listener.accept().expect("a connection");
            let local = accepted.local_addr().expect("an address");
            assert_eq!(peer.ip().to_canonical(), ip(&from));
            assert_eq!(local.ip().to_canonical(), ip(&to));
            drop(connection);
        }
    }
    // A host without a prefix has its own addresses only.
    let (plain, _device) = Host::create(rights, &server()).expect("a host");
    for address in ["10.1.0.1", "fd01::1"] {
        let bound = plain.enter(|| UdpSocket::bind((ip(address), 0)));
        let error = bound.expect("enter").expect_err(address);
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }
}

fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let family = if from.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket(family, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

/// A kernel limits how many ICMP errors it sends, and then a client waits for an answer that never comes.
pub(super) fn every_datagram_to_a_closed_port_is_refused(rights: &Rights) {
    let (a, _b, _ferry) = pair(rights, &client(), &server());
    for to in ["10.9.0.2", "fd09::2"] {
        let any = if to.contains(':') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        for k in 0..30 {
            let asked = a.enter(|| {
                let socket = UdpSocket::bind(any)?;
                socket.connect((ip(to), 9))?;
                socket.set_read_timeout(Some(Duration::from_secs(5)))?;
                socket.send(b"?")?;
                socket.recv(&mut [0; 9])
            });
            let error = asked.expect("enter").expect_err(to);
            let kind = error.kind();
            assert_eq!(kind, io::ErrorKind::ConnectionRefused, "{to}, {k}");
        }
    }
}
