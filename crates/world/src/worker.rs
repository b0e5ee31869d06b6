//! Workloads of a world and the flows of their connections.

use std::sync::Arc;

use swell_base::{Paged, Tag, fetch};
use swell_tcp::Config;
use swell_workload::{Conn, Info, Workload};

use crate::flow::{AnyFlow, Flows};
use crate::path::PathId;
use crate::profiles::Profiles;

const CLOSED: u32 = u32::MAX;

/// Workloads by number. The fields that a timer needs are in dense arrays, because there may be thousands of workloads.
#[derive(Default)]
pub(crate) struct Workers {
    machines: Vec<Box<dyn Workload>>,
    /// Flow of each workload's first connection. Many workloads have only this one.
    first: Vec<u32>,
    rest: Vec<Worker>,
}

struct Worker {
    /// Flow of each open connection. Workloads number their connections from zero.
    flows: Paged<u32>,
    tag: Tag,
    path: PathId,
    open: usize,
    profiles: Profiles,
}

impl Workers {
    /// Adds a workload; returns its number.
    pub fn add(
        &mut self,
        machine: Box<dyn Workload>,
        (tag, path): (Tag, PathId),
        tcp: Arc<Config>,
    ) -> usize {
        self.machines.push(machine);
        self.first.push(CLOSED);
        self.rest.push(Worker {
            flows: Paged::default(),
            tag,
            path,
            open: 0,
            profiles: Profiles::new(tcp),
        });
        self.rest.len() - 1
    }

    #[inline]
    pub fn machine(&self, workload: u32) -> &dyn Workload {
        &*self.machines[workload as usize]
    }

    #[inline]
    pub fn machine_mut(&mut self, workload: u32) -> &mut dyn Workload {
        &mut *self.machines[workload as usize]
    }

    /// The tag on the packets of a workload.
    pub fn tag(&self, workload: u32) -> Tag {
        self.rest[workload as usize].tag
    }

    /// The path of a workload's packets.
    pub fn path(&self, workload: u32) -> PathId {
        self.rest[workload as usize].path
    }

    pub fn profiles(&mut self, workload: u32) -> &mut Profiles {
        &mut self.rest[workload as usize].profiles
    }

    /// [Prefetches](fetch()) the table entries of a workload and of its first flow.
    #[inline]
    pub fn fetch(&self, workload: u32) {
        fetch(&self.first[workload as usize]);
        fetch(&self.machines[workload as usize]);
    }

    /// Prefetches the workload itself.
    #[inline]
    pub fn fetch_machine(&self, workload: u32) {
        fetch(self.machine(workload));
    }

    /// The flow of an open connection; `None` if there is no such connection or workload.
    #[inline]
    pub fn flow(&self, workload: u32, conn: Conn) -> Option<u32> {
        let flow = match conn.0 {
            0 => *self.first.get(workload as usize)?,
            i => *self.rest.get(workload as usize)?.flows.get(i)?,
        };
        (flow != CLOSED).then_some(flow)
    }

    pub fn opened(&mut self, workload: u32, conn: Conn, flow: u32) {
        let Worker { flows, open, .. } = &mut self.rest[workload as usize];
        let before = flows.insert(conn.0, flow);
        *open += usize::from(before.is_none());
        if conn.0 == 0 {
            self.first[workload as usize] = flow;
        }
    }

    pub fn closed(&mut self, workload: u32, conn: Conn) {
        let Worker { flows, open, .. } = &mut self.rest[workload as usize];
        if flows.remove(conn.0).is_some() {
            *open -= 1;
        }
        if conn.0 == 0 {
            self.first[workload as usize] = CLOSED;
        }
    }

    /// Bytes of use to a workload that have arrived so far ([`Workload::delivered`]).
    pub fn delivered(&self, workload: u32, all: &Flows) -> Option<[u64; 2]> {
        let Worker { flows, .. } = &self.rest[workload as usize];
        self.machines[workload as usize].delivered(&|conn| {
            let flow = flows.get(conn.0).and_then(|&f| all.get(f));
            flow.map_or_else(Info::default, AnyFlow::info)
        })
    }

    /// Ends the run for all workloads; `all` are the world's flows.
    pub fn finish(&mut self, all: &Flows) {
        for (machine, Worker { flows, .. }) in self.machines.iter_mut().zip(&self.rest) {
            machine.finish(&|conn| {
                let flow = flows.get(conn.0).and_then(|&f| all.get(f));
                flow.map_or_else(Info::default, AnyFlow::info)
            });
        }
    }

    /// Number of open connections.
    pub fn open(&self) -> usize {
        self.rest.iter().map(|w| w.open).sum()
    }
}
