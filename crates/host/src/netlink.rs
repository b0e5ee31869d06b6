//! Links, addresses and routes of one network namespace, by rtnetlink(7), so that no external tool is needed.

use ipnet::{IpNet, Ipv4Net};
use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoMacVlan, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    MacVlanMode, Stats64,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

/// The index of the loopback device, the first device of every namespace.
pub const LOOPBACK: u32 = 1;

/// The routing table of local addresses (linux/rtnetlink.h).
const TABLE_LOCAL: u8 = 255;

/// A netlink connection to the network namespace in which it was opened. It stays with that namespace, whichever
/// thread uses it.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// The device's index.
    pub fn index(&mut self, name: &str) -> io::Result<u32> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        Ok(self.link(message)?.header.index)
    }

    /// The device's counters.
    pub fn statistics(&mut self, index: u32) -> io::Result<Stats64> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.link(message)?
            .attributes
            .into_iter()
            .find_map(|a| match a {
                LinkAttribute::Stats64(s) => Some(s),
                _ => None,
            })
            .ok_or_else(|| io::Error::other("the kernel keeps no counters of this device"))
    }

    /// Creates a veth pair (veth(4)). The device `other` is created in the network namespace of which `there` is a
    /// descriptor, if any.
    pub fn add_pair(&mut self, name: &str, other: &str, there: Option<RawFd>) -> io::Result<()> {
        let named = |n: &str| {
            let mut message = LinkMessage::default();
            message.attributes.push(LinkAttribute::IfName(n.into()));
            message
        };
        let mut message = named(name);
        let mut peer = named(other);
        peer.attributes.extend(there.map(LinkAttribute::NetNsFd));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.ask(RouteNetlinkMessage::NewLink(message), flags)?;
        Ok(())
    }

    /// Creates a device with a hardware address of its own on the Ethernet interface `lower`, in the network namespace of
    /// which `there` is a descriptor.
    pub fn add_macvlan(&mut self, name: &str, lower: u32, there: RawFd) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::Link(lower),
            LinkAttribute::NetNsFd(there),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::MacVlan),
                LinkInfo::Data(InfoData::MacVlan(vec![InfoMacVlan::Mode(
                    MacVlanMode::Bridge,
                )])),
            ]),
        ];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.ask(RouteNetlinkMessage::NewLink(message), flags)?;
        Ok(())
    }

    /// All attributes of a device.
    pub fn link_of(&mut self, index: u32) -> io::Result<LinkMessage> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.link(message)
    }

    /// Addresses of global scope of a device.
    pub fn addresses(&mut self, index: u32) -> io::Result<Vec<String>> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let answers = self.ask(request, NLM_F_DUMP)?;
        let address = |answer: RouteNetlinkMessage| match answer {
            RouteNetlinkMessage::NewAddress(m)
                if m.header.index == index && m.header.scope == AddressScope::Universe =>
            {
                m.attributes.into_iter().find_map(|a| match a {
                    AddressAttribute::Address(address) => Some(address.to_string()),
                    _ => None,
                })
            }
            _ => None,
        };
        Ok(answers.into_iter().filter_map(address).collect())
    }

    /// The device's hardware address.
    pub fn hardware_address(&mut self, index: u32) -> io::Result<[u8; 6]> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        let found = self.link(message)?.attributes;
        let mut addresses = found.iter().filter_map(|a| match a {
            LinkAttribute::Address(bytes) => <[u8; 6]>::try_from(bytes.as_slice()).ok(),
            _ => None,
        });
        addresses
            .next()
            .ok_or_else(|| io::Error::other("the device has no hardware address"))
    }

    /// Sets attributes and flags of a device.
    pub fn set_link(
        &mut self,
        index: u32,
        flags: LinkFlags,
        attributes: Vec<LinkAttribute>,
    ) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = flags;
        message.header.change_mask = flags;
        message.attributes = attributes;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)?;
        Ok(())
    }

    /// Brings a device up.
    pub fn raise(&mut self, index: u32) -> io::Result<()> {
        self.set_link(index, LinkFlags::Up, Vec::new())
    }

    /// Adds a route for `prefix` to the neighbour `via` on the device, with source address `source`.
    pub fn add_neighbour_route(
        &mut self,
        index: u32,
        prefix: IpNet,
        via: IpAddr,
        source: IpAddr,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(prefix.addr()),
            destination_prefix_length: prefix.prefix_len(),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Universe,
            kind: RouteType::Unicast,
            // The neighbour is on the link, whatever its address is.
            flags: RouteFlags::Onlink,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::from(prefix.network())),
            RouteAttribute::Gateway(RouteAddress::from(via)),
            RouteAttribute::Oif(index),
            RouteAttribute::PrefSource(RouteAddress::from(source)),
        ];
        self.ask(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )?;
        Ok(())
    }

    /// Gives the device a host address, without a route to neighbours.
    pub fn add_address(&mut self, index: u32, address: IpAddr) -> io::Result<()> {
        self.add_prefix(index, IpNet::from(address))
    }

    /// Gives the device an address, and a route to the other addresses of its prefix.
    pub fn add_network(&mut self, index: u32, network: Ipv4Net) -> io::Result<()> {
        self.add_prefix(index, network.into())
    }

    fn add_prefix(&mut self, index: u32, network: IpNet) -> io::Result<()> {
        let address = network.addr();
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = network.prefix_len();
        message.header.index = index;
        message.header.scope = AddressScope::Universe;
        message.header.flags = AddressHeaderFlags::empty();
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        if address.is_ipv6() {
            // Nobody on the link could answer, so duplicate address detection would only delay the start.
            message
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.ask(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )?;
        Ok(())
    }

    /// Makes every address of a prefix local (`ip route add local PREFIX dev lo`).
    pub fn add_local(&mut self, prefix: IpNet) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(prefix.addr()),
            destination_prefix_length: prefix.prefix_len(),
            table: TABLE_LOCAL,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Host,
            kind: RouteType::Local,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::from(prefix.network())),
            RouteAttribute::Oif(LOOPBACK),
        ];
        self.ask(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )?;
        Ok(())
    }

    /// Whether the host would accept packets to the address as its own.
    pub fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = IpNet::from(address).prefix_len();
        message.attributes = vec![RouteAttribute::Destination(RouteAddress::from(address))];
        let answers = self.ask(RouteNetlinkMessage::GetRoute(message), 0)?;
        Ok(answers.iter().any(|answer| {
            matches!(answer, RouteNetlinkMessage::NewRoute(route) if route.header.kind == RouteType::Local)
        }))
    }

    /// Index of the device by which this machine's packets to the address leave; `None` if there is no route, or the
    /// address is its own.
    pub fn egress(&mut self, address: IpAddr) -> io::Result<Option<u32>> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = IpNet::from(address).prefix_len();
        message.attributes = vec![RouteAttribute::Destination(RouteAddress::from(address))];
        let answers = match self.ask(RouteNetlinkMessage::GetRoute(message), 0) {
            Err(e) if e.raw_os_error().is_some() => return Ok(None),
            answers => answers?,
        };
        let device = |answer: RouteNetlinkMessage| match answer {
            RouteNetlinkMessage::NewRoute(route) if route.header.kind == RouteType::Unicast => {
                route.attributes.into_iter().find_map(|a| match a {
                    RouteAttribute::Oif(index) => Some(index),
                    _ => None,
                })
            }
            _ => None,
        };
        Ok(answers.into_iter().find_map(device))
    }

    /// Adds a default route to the device. Connections over it use the given congestion control.
    pub fn add_default(
        &mut self,
        index: u32,
        source: IpAddr,
        congestion_control: &str,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(source),
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: if source.is_ipv4() {
                RouteScope::Link
            } else {
                RouteScope::Universe
            },
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Oif(index),
            RouteAttribute::PrefSource(RouteAddress::from(source)),
            RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(congestion_control.into())]),
        ];
        self.ask(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )?;
        Ok(())
    }

    /// The congestion control of each default route to the device, as read from the kernel.
    pub fn congestion_controls(&mut self, index: u32) -> io::Result<Vec<String>> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Unspec;
        let answers = self.ask(RouteNetlinkMessage::GetRoute(message), NLM_F_DUMP)?;
        let mut found = Vec::new();
        for answer in answers {
            let RouteNetlinkMessage::NewRoute(route) = answer else {
                continue;
            };
            let ours = route.header.destination_prefix_length == 0
                && route.attributes.contains(&RouteAttribute::Oif(index));
            for attribute in route.attributes {
                if let (true, RouteAttribute::Metrics(metrics)) = (ours, attribute) {
                    found.extend(metrics.into_iter().filter_map(|m| match m {
                        RouteMetric::CcAlgo(name) => Some(name),
                        _ => None,
                    }));
                }
            }
        }
        Ok(found)
    }

    /// Adds a token bucket (tc-tbf(8)) with a drop-tail queue, limited in bytes, for packets that leave the device.
    pub fn add_token_bucket(&mut self, index: u32, bucket: &TokenBucket) -> io::Result<()> {
        let mut message = queue_of(index);
        message.attributes = vec![
            TcAttribute::Kind("tbf".into()),
            TcAttribute::Options(bucket.options()),
        ];
        self.ask(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )?;
        Ok(())
    }

    /// Packets dropped by the device's queueing discipline.
    pub fn queue_drops(&mut self, index: u32) -> io::Result<u64> {
        let request = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let mut drops = 0;
        for answer in self.ask(request, NLM_F_DUMP)? {
            let RouteNetlinkMessage::NewQueueDiscipline(queue) = answer else {
                continue;
            };
            if u32::try_from(queue.header.index) != Ok(index)
                || queue.header.parent != TcHandle::ROOT
            {
                continue;
            }
            drops += queue.attributes.iter().map(drops_of).sum::<u64>();
        }
        Ok(drops)
    }

    fn link(&mut self, message: LinkMessage) -> io::Result<LinkMessage> {
        self.ask(RouteNetlinkMessage::GetLink(message), 0)?
            .into_iter()
            .find_map(|m| match m {
                RouteNetlinkMessage::NewLink(link) => Some(link),
                _ => None,
            })
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Sends one request and collects all answers of the kernel.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.sequence_number = self.sequence;
        request.header.flags = NLM_F_REQUEST | flags;
        // A dump ends with its own message; other requests are acknowledged.
        if flags & NLM_F_DUMP != NLM_F_DUMP {
            request.header.flags |= NLM_F_ACK;
        }
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let (received, _) = self.socket.recv_from_full()?;
            let mut rest = received.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(io::Error::other)?;
                let length = (answer.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::Error(error) => {
                        return match error.code {
                            None => Ok(answers),
                            Some(_) => Err(error.to_io()),
                        };
                    }
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    _ => {}
                }
            }
        }
    }
}

/// A token bucket with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bytes per second, including link-layer headers.
    pub rate: u64,
    /// Bytes that can be sent at once after an idle time.
    pub burst: u32,
    /// Queue limit in bytes.
    pub queue: u32,
}

// Attributes and structures of `tbf`, from linux/pkt_sched.h.
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// Nanoseconds of a tick of the packet scheduler (include/net/pkt_sched.h, `PSCHED_SHIFT`), as a power of two.
const TICK_SHIFT: u32 = 6;

impl TokenBucket {
    /// `struct tc_tbf_qopt`, and attributes for values that do not fit into it.
    fn options(&self) -> Vec<TcOption> {
        // `struct tc_ratespec`: cell, link layer, overhead, cell alignment, mpu, rate.
        let spec = |rate: u32| {
            let mut bytes = vec![0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0];
            bytes.extend(rate.to_ne_bytes());
            bytes
        };
        let rate = u32::try_from(self.rate).unwrap_or(u32::MAX);
        let ticks =
            (u128::from(self.burst) * 1_000_000_000 / u128::from(self.rate.max(1))) >> TICK_SHIFT;
        let mut parameters = spec(rate);
        parameters.extend(spec(0));
        parameters.extend(self.queue.to_ne_bytes());
        parameters.extend(u32::try_from(ticks).unwrap_or(u32::MAX).to_ne_bytes());
        parameters.extend(0u32.to_ne_bytes());
        let mut options = vec![
            (TCA_TBF_PARMS, parameters),
            (TCA_TBF_BURST, self.burst.to_ne_bytes().to_vec()),
        ];
        if rate == u32::MAX {
            options.push((TCA_TBF_RATE64, self.rate.to_ne_bytes().to_vec()));
        }
        let option = |(kind, bytes)| TcOption::Other(DefaultNla::new(kind, bytes));
        options.into_iter().map(option).collect()
    }
}

fn queue_of(index: u32) -> TcMessage {
    let mut message = TcMessage::default();
    message.header.index = i32::try_from(index).unwrap_or(i32::MAX);
    message.header.parent = TcHandle::ROOT;
    message
}

fn drops_of(attribute: &TcAttribute) -> u64 {
    match attribute {
        TcAttribute::Stats2(all) => all
            .iter()
            .map(|stats| match stats {
                TcStats2::Queue(queue) => u64::from(queue.drops),
                _ => 0,
            })
            .sum(),
        _ => 0,
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
