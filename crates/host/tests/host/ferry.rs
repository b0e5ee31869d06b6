//! Carries packets from one device to the other, without an emulator.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use swell_host::{Device, Host, HostConfig, Nic, Rights};

/// Carries packets from one device to the other until it is dropped.
pub(super) struct Ferry {
    stop: Arc<AtomicBool>,
    largest: Arc<AtomicU64>,
    thread: Option<JoinHandle<u64>>,
}

impl Ferry {
    pub(super) fn between(mut a: Device, mut b: Device) -> Ferry {
        let stop = Arc::new(AtomicBool::new(false));
        let largest = Arc::new(AtomicU64::new(0));
        let (stopped, seen) = (Arc::clone(&stop), Arc::clone(&largest));
        let thread = thread::spawn(move || {
            let mut buffer = Vec::new();
            let tick = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            while !stopped.load(Ordering::Relaxed) {
                let mut both = [
                    PollFd::new(&a, PollFlags::IN),
                    PollFd::new(&b, PollFlags::IN),
                ];
                poll(&mut both, Some(&tick)).expect("devices can be polled");
                carry(&mut a, &mut b, &mut buffer, &seen);
                carry(&mut b, &mut a, &mut buffer, &seen);
            }
            a.dropped().expect("counters") + b.dropped().expect("counters")
        });
        Ferry {
            stop,
            largest,
            thread: Some(thread),
        }
    }

    /// The largest packet carried, in bytes.
    pub(super) fn largest(&self) -> u64 {
        self.largest.load(Ordering::Relaxed)
    }

    /// Stops; returns the number of packets that the devices dropped.
    pub(super) fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self
            .thread
            .take()
            .expect("it is taken only here and in drop");
        thread.join().expect("a ferry does not panic")
    }
}

impl Drop for Ferry {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry(from: &mut Device, to: &mut Device, buffer: &mut Vec<u8>, largest: &AtomicU64) {
    let mut refused = 0;
    loop {
        let shown = from.read(&mut |wire| {
            buffer.clear();
            buffer.extend_from_slice(wire.header);
            buffer.extend_from_slice(wire.payload);
            largest.fetch_max(buffer.len() as u64, Ordering::Relaxed);
            refused += to.write(buffer, wire.checksum);
        });
        refused += to.flush();
        assert_eq!(refused, 0, "what one kernel sent the other takes");
        if shown.expect("a device can be read") == 0 {
            return;
        }
    }
}

pub(super) fn pair(rights: &Rights, a: &HostConfig, b: &HostConfig) -> (Host, Host, Ferry) {
    let (a, device_a) = Host::create(rights, a).unwrap_or_else(|e| panic!("{e}"));
    let (b, device_b) = Host::create(rights, b).unwrap_or_else(|e| panic!("{e}"));
    (a, b, Ferry::between(device_a, device_b))
}
