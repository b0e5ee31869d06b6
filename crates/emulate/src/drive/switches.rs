//! The switches of a bridge.

use std::collections::VecDeque;
use std::net::IpAddr;

use swell_base::Time;
use swell_host::network;
use swell_world::{Delivery, Port};

use crate::ip::Header;
use crate::switch::{Exits, Switch, is_for_a_group};

/// Tells to which interface, by its number, packets to an address are routed.
pub type Route = Box<dyn FnMut(IpAddr) -> Option<usize> + Send>;

/// Counts of the frames of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Frames that came in.
    pub received: u64,
    /// Frames that left: neither refused by the kernel nor dropped by a fault of [`Faults`](crate::Faults).
    pub sent: u64,
    /// Of those that came in: frames that went to another interface at the same place, without crossing a link.
    pub local: u64,
    /// Of those that came in: frames to one host that went everywhere, because nobody knew where the host is.
    pub flooded: u64,
    /// Of those that came in: frames that went nowhere, because their destination is behind this interface, or because
    /// a router has no route for them.
    pub filtered: u64,
    /// Of those that came in: frames that a link dropped. One that crosses several links may be dropped by each.
    pub dropped: u64,
    /// Frames that the kernel refused to send.
    pub refused: u64,
    /// Frames that were lost before they were read, because the machine was too slow, and invalid ones.
    pub lost: u64,
}

/// The switches of a bridge.
pub(super) struct Bridging {
    pub nodes: Vec<Node>,
    /// The gate of each interface.
    pub seats: Vec<Gate>,
    /// The gate of each port of the world.
    pub ends: Vec<Gate>,
    /// Some frames go on from one span to another.
    pub chained: bool,
    pub routing: Option<Routing>,
    /// Frames for interfaces that have not been written yet.
    pub arrived: VecDeque<(Delivery, Exits)>,
    /// Frames were written that are not flushed.
    pub unflushed: bool,
    pub counts: Vec<PortCounts>,
}

/// A gate of the switch at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    pub node: usize,
    pub number: usize,
}

#[derive(Default)]
pub(super) struct Node {
    pub ways: Vec<GateTarget>,
    pub switch: Switch,
}

/// What is behind a gate.
#[derive(Clone, Copy)]
pub(super) enum GateTarget {
    Interface(usize),
    /// A span: the port where frames enter it, and the one where they leave.
    Span([Port; 2]),
}

/// The nodes are one router.
pub(super) struct Routing {
    pub route: Route,
    /// By node and interface: the gate that leads to it.
    pub towards: Vec<Vec<usize>>,
}

impl Bridging {
    /// Forgets which hosts were behind an interface.
    pub fn forget(&mut self, interface: usize) {
        let gate = self.seats[interface];
        self.nodes[gate.node].switch.forget(gate.number);
    }

    /// By which gates a frame leaves that came in by one.
    pub fn exits(&mut self, at: Time, gate: Gate, frame: &[u8]) -> Exits {
        if let Some(routing) = &mut self.routing {
            let header = network(frame).and_then(|n| Header::of(&frame[n..]));
            let to = header.and_then(|h| (routing.route)(h.destination));
            return match to.map(|to| routing.towards[gate.node][to]) {
                Some(number) if number != gate.number => Exits::One(number),
                _ => Exits::Nowhere,
            };
        }
        let node = &mut self.nodes[gate.node];
        match node.ways.len() {
            2 => Exits::One(1 - gate.number),
            _ => node.switch.forward(at, gate.number, frame),
        }
    }
}

impl Node {
    pub fn ways(&self, exits: Exits) -> impl Iterator<Item = GateTarget> {
        let all = self.ways.iter().enumerate();
        let leaves = move |number| match exits {
            Exits::Nowhere => false,
            Exits::One(gate) => number == gate,
            Exits::Others(gate) => number != gate,
        };
        all.filter(move |(number, _)| leaves(*number))
            .map(|(_, way)| *way)
    }
}

/// Whether a frame leaves by several gates because nobody knows where its destination is.
pub(super) fn floods(exits: Exits, frame: &[u8]) -> bool {
    matches!(exits, Exits::Others(_)) && !is_for_a_group(frame)
}

/// By node and interface: the number of the gate that leads to it. The nodes are a tree.
pub(super) fn towards(nodes: &[Node], ends: &[Gate], interfaces: usize) -> Vec<Vec<usize>> {
    /// Fills in what lies behind a gate.
    fn mark(nodes: &[Node], ends: &[Gate], gate: Gate, of: (usize, usize), all: &mut [Vec<usize>]) {
        match nodes[gate.node].ways[gate.number] {
            GateTarget::Interface(i) => all[of.0][i] = of.1,
            GateTarget::Span([_, to]) => {
                let far = ends[to.0 as usize];
                let others = (0..nodes[far.node].ways.len()).filter(|&n| n != far.number);
                for number in others {
                    let node = far.node;
                    mark(nodes, ends, Gate { node, number }, of, all);
                }
            }
        }
    }
    let mut all = vec![vec![0; interfaces]; nodes.len()];
    for (node, ways) in nodes.iter().enumerate() {
        for number in 0..ways.ways.len() {
            mark(nodes, ends, Gate { node, number }, (node, number), &mut all);
        }
    }
    all
}
