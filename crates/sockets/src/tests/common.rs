//! A workload made from a closure, and a log of its events.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use swell_base::{Dur, Time};
use swell_tcp::Config;
use swell_workload::{Action, Conn, Event, Info, Record, Workload};

use crate::{Carrier, CarrierConfig};

pub const MS: Dur = Dur::from_millis(1);

type Handler = Box<dyn FnMut(Time, Event, &mut Vec<Action>) + Send>;

/// A workload that does what its closure returns.
pub struct Script {
    handler: Handler,
    log: Log,
}

/// The events delivered to a workload.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub fn has(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.count(is) > 0
    }

    pub fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|e| is(e)).count()
    }

    pub fn sum(&self, of: impl Fn(&Event) -> u64) -> u64 {
        self.0.lock().unwrap().iter().map(of).sum()
    }
}

impl Script {
    pub fn new(
        handler: impl FnMut(Time, Event, &mut Vec<Action>) + Send + 'static,
    ) -> (Box<Script>, Log) {
        let log = Log::default();
        let script = Script {
            handler: Box::new(handler),
            log: log.clone(),
        };
        (Box::new(script), log)
    }
}

impl Workload for Script {
    fn handle(&mut self, now: Time, event: Event, actions: &mut Vec<Action>) {
        self.log.0.lock().unwrap().push(event);
        (self.handler)(now, event, actions);
    }

    fn take_records(&mut self) -> Vec<Record> {
        Vec::new()
    }

    fn finish(&mut self, _: &dyn Fn(Conn) -> Info) {}
}

/// A carrier of one workload on the loopback network.
pub fn carrier(machine: Box<dyn Workload>) -> Carrier {
    carrier_with(machine, Config::linux())
}

pub fn carrier_with(machine: Box<dyn Workload>, config: Config) -> Carrier {
    let mut carrier = Carrier::new(CarrierConfig::default()).unwrap();
    carrier.add(machine, &Arc::new(config)).unwrap();
    carrier
}

/// Runs until `done`. A minute counts as forever: a busy machine needs a second.
pub fn run_until(carrier: &mut Carrier, done: impl Fn() -> bool) {
    let stop = AtomicBool::new(false);
    let end = carrier.now() + Dur::from_secs(60);
    while !done() {
        assert!(carrier.now() < end, "{:?}", carrier.report());
        let next = carrier.now() + Dur::from_millis(5);
        carrier.run(next, &stop).unwrap();
    }
}
