//! A workload and the flows of its connections.

use std::sync::Arc;

use swell_base::Tag;
use swell_tcp::Config;
use swell_workload::{Conn, Info, Workload};

use crate::flow::Flow;
use crate::profiles::Profiles;

const CLOSED: u32 = u32::MAX;

/// Begins with what a timer needs.
#[repr(C, align(64))]
pub(crate) struct Worker {
    pub machine: Box<dyn Workload>,
    /// Flow of each connection; workloads number theirs from zero up.
    flows: Vec<u32>,
    /// The same of the first, the only one that many workloads have.
    first: u32,
    pub tag: Tag,
    open: usize,
    pub profiles: Profiles,
}

impl Worker {
    pub fn new(machine: Box<dyn Workload>, tag: Tag, tcp: Arc<Config>) -> Worker {
        Worker {
            machine,
            flows: Vec::new(),
            first: CLOSED,
            tag,
            open: 0,
            profiles: Profiles::new(tcp),
        }
    }

    /// The flow of an open connection.
    #[inline]
    pub fn flow(&self, conn: Conn) -> Option<u32> {
        let flow = match conn.0 {
            0 => self.first,
            i => *self.flows.get(i as usize)?,
        };
        (flow != CLOSED).then_some(flow)
    }

    pub fn opened(&mut self, conn: Conn, flow: u32) {
        let i = conn.0 as usize;
        if self.flows.len() <= i {
            self.flows.resize(i + 1, CLOSED);
        }
        self.open += usize::from(self.flows[i] == CLOSED);
        self.flows[i] = flow;
        self.first = self.flows[0];
    }

    pub fn closed(&mut self, conn: Conn) {
        if let Some(f) = self.flows.get_mut(conn.0 as usize)
            && *f != CLOSED
        {
            *f = CLOSED;
            self.open -= 1;
            self.first = self.flows[0];
        }
    }

    /// The run ends; `all` are the world's flows.
    pub fn finish(&mut self, all: &[Option<Box<Flow>>]) {
        let Worker { machine, flows, .. } = self;
        machine.finish(&|conn| {
            let flow = flows
                .get(conn.0 as usize)
                .and_then(|&f| all.get(f as usize));
            flow.and_then(Option::as_deref)
                .map_or_else(Info::default, Flow::info)
        });
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.open
    }
}
