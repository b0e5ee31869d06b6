//! One-way delays of datagrams, from the sender's clock to the receiving kernel's timestamp.
//!
//! ```text
//! stamps receive PORT [DELAY]               prints delays when the sender says that it is done; by how
//!                                           much they miss DELAY, in us, early or late, where it is given
//! stamps send HOST PORT RATE SECONDS SIZE [exponential]
//!                                           RATE datagrams of SIZE payload bytes a second, at equal distances or at
//!                                           exponential ones, with real-time priority if it is granted
//! stamps floor HOST PORT RATE SECONDS SIZE  prints the processor time per datagram of a loop that sleeps until each is
//!                                           due and sends it, with real-time priority if it is granted
//! ```
//!
//! Both ends must be on one machine, because they read its clock; under `swell under` they are.

#![expect(
    unsafe_code,
    reason = "the kernel's receive stamps come as ancillary data that no safe wrapper reads"
)]

use std::error::Error;
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use swell_base::Stream;
use swell_host::be_punctual;

type Any = Box<dyn Error>;

fn main() -> Result<(), Any> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["receive", port] => receive(port.parse()?, None),
        ["receive", port, delay] => receive(port.parse()?, Some(delay.parse()?)),
        ["send", host, port, rate, seconds, size, ref law @ ..] if law.len() < 2 => {
            let rate = rate.parse()?;
            let gaps = match law {
                [] => None,
                ["exponential"] => Some(Stream::new(0, "stamps")),
                _ => return Err("an unknown law".into()),
            };
            send(
                (host, port.parse()?),
                rate,
                seconds.parse()?,
                size.parse()?,
                gaps,
            )
        }
        ["floor", host, port, rate, seconds, size] => floor(
            (host, port.parse()?),
            rate.parse()?,
            seconds.parse()?,
            size.parse()?,
        ),
        _ => Err(
            "stamps receive PORT [DELAY] | stamps send HOST PORT RATE SECONDS SIZE [exponential] | stamps floor HOST PORT RATE SECONDS SIZE"
                .into(),
        ),
    }
}

/// Nanoseconds since the epoch.
fn epoch() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |d| d.as_nanos() as u64)
}

fn send(
    to: (&str, u16),
    rate: f64,
    seconds: f64,
    size: usize,
    mut gaps: Option<Stream>,
) -> Result<(), Any> {
    if gaps.is_some() {
        be_punctual(true);
    }
    let socket = connected(to)?;
    let begun = Instant::now();
    let count = (rate * seconds) as u64;
    let mut packet = vec![0; size.max(16)];
    let mut at = 0.0;
    for i in 0..count {
        let due = Duration::from_secs_f64(at);
        at = match &mut gaps {
            None => (i + 1) as f64 / rate,
            Some(random) => at + random.exponential(1.0 / rate),
        };
        // A sleep shorter than this takes longer than intended.
        let early = due
            .saturating_sub(begun.elapsed())
            .saturating_sub(Duration::from_micros(60));
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        while begun.elapsed() < due {
            std::hint::spin_loop();
        }
        packet[..8].copy_from_slice(&i.to_be_bytes());
        packet[8..16].copy_from_slice(&epoch().to_be_bytes());
        // A datagram that cannot be sent is lost, as on a wire.
        let _ = socket.send(&packet);
    }
    packet[..8].copy_from_slice(&u64::MAX.to_be_bytes());
    packet[8..16].copy_from_slice(&count.to_be_bytes());
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(50));
        let _ = socket.send(&packet[..16]);
    }
    Ok(())
}

fn connected(to: (&str, u16)) -> Result<UdpSocket, Any> {
    let to = to
        .to_socket_addrs()?
        .find(|a| a.is_ipv4())
        .ok_or("no such host")?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(to)?;
    Ok(socket)
}

/// What no emulator that wakes for each packet can be below on this machine: a wake-up and a datagram sent.
#[expect(clippy::print_stdout, reason = "this is what the example is for")]
fn floor(to: (&str, u16), rate: f64, seconds: f64, size: usize) -> Result<(), Any> {
    be_punctual(true);
    let socket = connected(to)?;
    let packet = vec![0; size];
    let count = (rate * seconds) as u64;
    // Nanoseconds on a processor, the first field (Documentation/scheduler/sched-stats.rst of Linux).
    let spent = || -> Result<u64, Any> {
        let all = std::fs::read_to_string("/proc/thread-self/schedstat")?;
        Ok(all.split(' ').next().unwrap_or_default().parse()?)
    };
    let (before, begun) = (spent()?, Instant::now());
    for i in 0..count {
        let due = Duration::from_secs_f64(i as f64 / rate);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        let _ = socket.send(&packet);
    }
    let each = (spent()? - before) as f64 / count.max(1) as f64 / 1e3;
    println!("{each:.1} us of processor time per datagram");
    Ok(())
}

fn receive(port: u16, nominal: Option<i64>) -> Result<(), Any> {
    let socket = UdpSocket::bind(("0.0.0.0", port))?;
    let on: libc::c_int = 1;
    let buffer: libc::c_int = 64 << 20;
    for (option, value) in [(libc::SO_TIMESTAMPNS, on), (libc::SO_RCVBUFFORCE, buffer)] {
        // SAFETY: the pointer is to an int that lives during the call, and the length is its.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as u32,
            );
        }
    }
    let mut delays = Vec::new();
    let mut packet = [0; 65_536];
    loop {
        let (n, stamp) = stamped(&socket, &mut packet)?;
        if n < 16 {
            continue;
        }
        let word = |i: usize| {
            let mut b = [0; 8];
            b.copy_from_slice(&packet[i..i + 8]);
            u64::from_be_bytes(b)
        };
        if word(0) == u64::MAX {
            return print(&mut delays, nominal, word(8));
        }
        delays.push(stamp as i64 - word(8) as i64);
    }
}

/// Receives a datagram with the kernel's timestamp.
fn stamped(socket: &UdpSocket, packet: &mut [u8]) -> io::Result<(usize, u64)> {
    let mut control = [0u64; 16];
    let mut part = libc::iovec {
        iov_base: packet.as_mut_ptr().cast(),
        iov_len: packet.len(),
    };
    // SAFETY: an all-zero msghdr has no parts. The pointers set below live during the call and have the right
    // lengths. Control messages are walked by the kernel's own macros over the kernel's output.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        let n = libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0);
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut stamp = 0;
        let mut at = libc::CMSG_FIRSTHDR(&raw const message);
        while !at.is_null() {
            if (*at).cmsg_type == libc::SCM_TIMESTAMPNS {
                let time: libc::timespec = libc::CMSG_DATA(at)
                    .cast::<libc::timespec>()
                    .read_unaligned();
                stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            }
            at = libc::CMSG_NXTHDR(&raw const message, at);
        }
        Ok((n as usize, stamp))
    }
}

#[expect(clippy::print_stdout, reason = "this is what the example is for")]
fn print(delays: &mut [i64], nominal: Option<i64>, sent: u64) -> Result<(), Any> {
    if let Some(us) = nominal {
        for delay in &mut *delays {
            *delay = (*delay - us * 1000).abs();
        }
    }
    let what = if nominal.is_some() {
        "error"
    } else {
        "one-way delay"
    };
    delays.sort_unstable();
    let at = |q: f64| {
        let last = delays.len().saturating_sub(1);
        delays
            .get((q * last as f64) as usize)
            .map_or(f64::NAN, |&d| d as f64 / 1e3)
    };
    println!(
        "{} of {sent} came; {what} in us: min {:.0}, p50 {:.0}, p90 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0}",
        delays.len(),
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    Ok(())
}
