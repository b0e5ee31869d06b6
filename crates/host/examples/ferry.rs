//! Throughput of two devices without an emulator: a program between two hosts, in which a thread carries every packet
//! from one to the other.
//!
//! ```text
//! cargo run --release -p swell-live --example ferry [segment|pass|off] -- iperf3
//! ```
//! The first host, 10.0.0.1, runs `iperf3 -c 10.0.0.2 -t 3`, the second `iperf3 -s -1`. At the end the program prints
//! its own CPU time per packet.
#![expect(clippy::print_stdout, reason = "an example talks on stdout")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};
use swell_host::Nic;
use swell_host::{Device, Host, HostConfig, Offload, Program, Rights, Stream, helper_main};

fn main() -> ExitCode {
    if let Some(code) = helper_main() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            println!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let offload = match std::env::args().nth(1).as_deref() {
        None | Some("segment") => Offload::Segment,
        Some("pass") => Offload::Pass,
        Some("off") => Offload::Off,
        Some(other) => return Err(format!("`{other}` is none of segment, pass, off").into()),
    };
    let rights = Rights::obtain()?;
    let host = |name: &str, address: &str| -> Result<(Host, Device), Box<dyn Error>> {
        let mut config = HostConfig::new(name, [address.parse()?]);
        config.device.offload = offload;
        Ok(Host::create(&rights, &config)?)
    };
    let (client, mut a) = host("client", "10.0.0.1")?;
    let (server, mut b) = host("server", "10.0.0.2")?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let ferry = thread::spawn(move || -> io::Result<(u64, f64, u64)> {
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let mut buffer = Vec::new();
        let mut packets = 0;
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        while !stopped.load(Ordering::Relaxed) {
            let (from_a, from_b) = (a.fd(), b.fd());
            poll(
                &mut [
                    PollFd::from_borrowed_fd(from_a, PollFlags::IN),
                    PollFd::from_borrowed_fd(from_b, PollFlags::IN),
                ],
                Some(&tick),
            )?;
            packets += carry(&mut a, &mut b, &mut buffer)?;
            packets += carry(&mut b, &mut a, &mut buffer)?;
        }
        let end = clock_gettime(ClockId::ThreadCPUTime);
        let spent = (end.tv_sec - start.tv_sec) as f64 + (end.tv_nsec - start.tv_nsec) as f64 / 1e9;
        Ok((packets, spent, a.dropped()? + b.dropped()?))
    });
    let mut serving = server.spawn(Program::new(["iperf3", "-s", "-1"]))?;
    thread::sleep(Duration::from_millis(300));
    let mut asking = client.spawn(Program {
        stdout: Stream::Inherit,
        stderr: Stream::Inherit,
        ..Program::new(["iperf3", "-c", "10.0.0.2", "-t", "3", "-f", "g"])
    })?;
    asking.wait_timeout(Duration::from_secs(30))?;
    serving.kill()?;
    stop.store(true, Ordering::Relaxed);
    let (packets, spent, dropped) = ferry.join().map_err(|_| "the ferry panicked")??;
    println!(
        "ferry: {packets} packets, {spent:.2} s of processor, {:.2} us each; {dropped} dropped at devices",
        spent * 1e6 / packets.max(1) as f64
    );
    Ok(())
}

fn carry(from: &mut Device, to: &mut Device, buffer: &mut Vec<u8>) -> io::Result<u64> {
    let mut refused = 0;
    let mut packets = 0;
    // A bounded number of reads, so that the other direction gets its turn.
    for _ in 0..16 {
        let shown = from.read(&mut |wire| {
            buffer.clear();
            buffer.extend_from_slice(wire.header);
            buffer.extend_from_slice(wire.payload);
            refused += to.write(buffer, wire.checksum);
        })?;
        refused += to.flush();
        if shown == 0 {
            break;
        }
        packets += shown as u64;
    }
    match refused {
        0 => Ok(packets),
        n => Err(io::Error::other(format!(
            "the other host did not take {n} packets"
        ))),
    }
}
