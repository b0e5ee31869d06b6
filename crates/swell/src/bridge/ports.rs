//! The interfaces of a bridge: where they are, and what passed them.

use std::fmt::{self, Display};
use std::str::FromStr;

use comfy_table::{Table, presets};
use serde::Serialize;
use swell_emulate::{Layout, LayoutError, LinkEnd, PortCounts, ends};
use swell_experiment::file::unknown_name;
use swell_host::InterfaceFacts;

use super::network::Network;
use crate::fail::Fail;

/// Most interfaces of a bridge: the memory of their rings is not swapped out, and each takes several descriptors.
const MOST: usize = 256;

/// An interface, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// Where it is.
    pub place: AttachmentPoint,
    /// Its name.
    pub interface: String,
}

/// A place in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttachmentPoint {
    /// The clients' end of the foreground's path.
    Left,
    /// Its other end.
    Right,
    /// An end of a link: its name, and whether it is the right end.
    Of(String, bool),
}

impl Display for AttachmentPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |right: &bool| if *right { "right" } else { "left" };
        match self {
            AttachmentPoint::Left => f.write_str("left"),
            AttachmentPoint::Right => f.write_str("right"),
            AttachmentPoint::Of(link, right) => write!(f, "{link}:{}", side(right)),
        }
    }
}

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Port, String> {
        let wrong = || format!("`{text}` is not LINK:left=INTERFACE or LINK:right=INTERFACE");
        let (place, interface) = text.split_once('=').ok_or_else(wrong)?;
        let (link, end) = place.split_once(':').ok_or_else(wrong)?;
        let right = match end {
            "left" => false,
            "right" => true,
            _ => return Err(wrong()),
        };
        if link.is_empty() || interface.is_empty() {
            return Err(wrong());
        }
        Ok(Port {
            place: AttachmentPoint::Of(link.into(), right),
            interface: interface.into(),
        })
    }
}

/// Rejects an interface that is given twice: its frames would go round.
pub(super) fn check_names(ports: &[Port]) -> Result<(), Fail> {
    if ports.len() > MOST {
        return Err(
            Fail::usage(format!("{} interfaces are more than {MOST}", ports.len()))
                .hint("join some of them by a bridge of the kernel, and give its interface"),
        );
    }
    for (i, port) in ports.iter().enumerate() {
        if let Some(other) = ports[..i].iter().find(|p| p.interface == port.interface) {
            let (name, here, there) = (&port.interface, &other.place, &port.place);
            return Err(Fail::usage(match here == there {
                true => format!("{name} is given twice ({here})"),
                false => format!("{name} cannot be in two places ({here} and {there})"),
            }));
        }
    }
    Ok(())
}

/// Where the interfaces are among the links.
pub(super) fn layout(
    network: &Network,
    ports: &[Port],
    interfaces: &[InterfaceFacts],
) -> Result<Layout, Fail> {
    let links: Vec<&str> = network.spec.links.iter().map(|l| &*l.name).collect();
    let path = network.spec.foreground_path();
    let outer = ends(&path).ok_or_else(|| Fail::failed("the foreground has no path"))?;
    let end = |port: &Port| match &port.place {
        AttachmentPoint::Left => Ok(outer[0]),
        AttachmentPoint::Right => Ok(outer[1]),
        AttachmentPoint::Of(name, right) => {
            let link = links.iter().position(|l| l == name);
            let link = link.ok_or_else(|| {
                let (message, hint) = unknown_name("link", name, &links);
                Fail::usage(format!("--port: {message}")).hint(hint)
            })?;
            Ok(LinkEnd {
                link,
                right: *right,
            })
        }
    };
    let places = ports.iter().map(end).collect::<Result<Vec<_>, _>>()?;
    Layout::new(&places, links.len(), &network.paths).map_err(|e| match e {
        LayoutError::Loop(link) => Fail::usage(format!(
            "link `{}` closes a loop, in which frames to everybody would go round forever",
            links[link]
        ))
        .hint("a bridge joins networks without loops"),
        LayoutError::Apart(i) => Fail::usage(format!(
            "no path of the experiment leads from {} to {}",
            interfaces[0].name, interfaces[i].name
        )),
        LayoutError::Together => {
            Fail::usage("all interfaces are at one end, so nothing would cross a link")
        }
    })
}

/// What passed an interface.
#[derive(Serialize)]
pub(super) struct Shown<'p> {
    /// Its name.
    interface: &'p str,
    /// Where it is.
    place: String,
    /// Frames that came in, and that left.
    received: u64,
    sent: u64,
    /// Of those that came in: how many went to another interface at the same place, went everywhere because nobody knew
    /// where their destination is, went nowhere, and were dropped by links.
    local: u64,
    flooded: u64,
    filtered: u64,
    dropped: u64,
    /// Frames that the kernel did not send, and frames that were lost before they were read.
    refused: u64,
    lost: u64,
}

/// What passed each interface.
pub(super) fn shown<'p>(ports: &'p [Port], counts: &[PortCounts]) -> Vec<Shown<'p>> {
    let both = ports.iter().zip(counts);
    both.map(|(port, c)| Shown {
        interface: &port.interface,
        place: port.place.to_string(),
        received: c.received,
        sent: c.sent,
        local: c.local,
        flooded: c.flooded,
        filtered: c.filtered,
        dropped: c.dropped,
        refused: c.refused,
        lost: c.lost,
    })
    .collect()
}

/// The same as a table. A column in which everything is zero is left out, except for the first ones.
pub(super) fn table(ports: &[Shown<'_>]) -> String {
    type Column = (&'static str, fn(&Shown<'_>) -> u64);
    let columns: [Column; 8] = [
        ("frames in", |p| p.received),
        ("out", |p| p.sent),
        ("dropped by links", |p| p.dropped),
        ("local", |p| p.local),
        ("flooded", |p| p.flooded),
        ("to nowhere", |p| p.filtered),
        ("refused", |p| p.refused),
        ("lost", |p| p.lost),
    ];
    let used = |(i, (_, of)): &(usize, &Column)| *i < 3 || ports.iter().any(|p| of(p) > 0);
    let columns: Vec<&Column> = columns
        .iter()
        .enumerate()
        .filter(used)
        .map(|c| c.1)
        .collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let names = columns.iter().map(|(name, _)| (*name).to_owned());
    table.set_header(
        ["interface".to_owned(), "at".to_owned()]
            .into_iter()
            .chain(names),
    );
    for port in ports {
        let numbers = columns.iter().map(|(_, of)| of(port).to_string());
        table.add_row(
            [port.interface.to_owned(), port.place.clone()]
                .into_iter()
                .chain(numbers),
        );
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_names_a_link_its_end_and_an_interface() {
        let port: Port = "a.b-1:right=veth=0:1".parse().unwrap();
        assert_eq!(port.place, AttachmentPoint::Of("a.b-1".into(), true));
        assert_eq!(port.interface, "veth=0:1");
        assert_eq!(port.place.to_string(), "a.b-1:right");
        for wrong in ["", "a", "a=b", "a:up=b", ":left=b", "a:left=", "a:left"] {
            assert!(wrong.parse::<Port>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_interface_is_in_one_place() {
        let at = |place: AttachmentPoint, interface: &str| Port {
            place,
            interface: interface.into(),
        };
        let (a, b) = (
            at(AttachmentPoint::Left, "a"),
            at(AttachmentPoint::Right, "b"),
        );
        assert!(check_names(&[a.clone(), b.clone()]).is_ok());
        let twice = check_names(&[a.clone(), b.clone(), a.clone()]).unwrap_err();
        assert!(twice.message.contains("a is given twice (left)"), "{twice}");
        let both =
            check_names(&[a, b, at(AttachmentPoint::Of("x".into(), true), "b")]).unwrap_err();
        assert!(both.message.contains("(right and x:right)"), "{both}");
        let many: Vec<Port> = (0..257)
            .map(|i| at(AttachmentPoint::Left, &i.to_string()))
            .collect();
        assert!(check_names(&many[1..]).is_ok() && check_names(&many).is_err());
    }
}
