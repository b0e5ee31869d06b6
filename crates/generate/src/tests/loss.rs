//! A network between client and server that loses some or all packets.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::*;

/// A network namespace with only a loopback interface, held by a sleeping process.
struct Network(Child);

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Network {
    /// `None` if rights or programs are missing: see [`swell_needs::skip`].
    #[track_caller]
    fn new() -> Option<Network> {
        if !swell_needs::programs(&["unshare", "nsenter", "ip", "iptables"]) {
            return None;
        }
        let child = Command::new("unshare")
            .args(["--net", "sh", "-c", "ip link set lo up && exec sleep 120"])
            .stderr(Stdio::null())
            .spawn();
        let network = Network(child.ok()?);
        let own = std::fs::read_link("/proc/self/ns/net").ok();
        let apart = || std::fs::read_link(network.path()).ok() != own;
        for _ in 0..1_000 {
            if apart() && network.run("ip", "route get 127.0.0.1").is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let ready = apart() && network.run("ip", "route get 127.0.0.1").is_ok();
        match (ready, network.run("iptables", "-L")) {
            (true, Ok(())) => Some(network),
            (_, why) => {
                swell_needs::skip(format_args!("no network that loses packets: {why:?}"));
                None
            }
        }
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.0.id())
    }

    fn run(&self, program: &str, arguments: &str) -> Result<(), String> {
        let out = Command::new("nsenter")
            .arg(format!("--net={}", self.path()))
            .arg(program)
            .args(arguments.split(' '))
            .output()
            .map_err(|e| e.to_string())?;
        if out.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&out.stderr).trim().into())
    }

    /// Runs `f` in this network; threads and sockets that it creates are there too.
    fn inside<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        let namespace = File::open(self.path()).unwrap();
        let there = std::thread::spawn(move || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).unwrap();
            f()
        });
        there.join().unwrap()
    }
}

fn sides(network: &Network, traffic: Script) -> [Run; 2] {
    let server = network.inside(server);
    let to = target(&server);
    let role = Role::Client(client_of(vec![to], traffic, Play::default()));
    let client = network.inside(move || Run::new(config(role)).unwrap());
    [server, client]
}

#[test]
fn lost_packets_cost_time_and_nothing_else() {
    let Some(network) = Network::new() else {
        return;
    };
    // Applies to every packet, including those of handshakes and of the lease.
    let some = "-A INPUT -m statistic --mode random --probability 0.05 -j DROP";
    if let Err(why) = network.run("iptables", some) {
        return swell_needs::skip(why);
    }
    let [server, client] = sides(
        &network,
        transfers(20, 10, Dur::from_millis(50), |_| (2_000, 50_000)),
    );
    agreed(&client);
    client.start();
    until(|| {
        client.renew(Dur::from_secs(2));
        server.renew(Dur::from_secs(2));
        assert!(client.is_running() && server.is_running());
        client.is_played()
    });
    let counts = client.stop().counts;
    assert_eq!((counts.done, counts.failed, counts.unfinished), (200, 0, 0));
    assert_eq!(counts.received_bytes, 200 * 50_000);
    let flows = client.flows(0, usize::MAX).flows;
    assert!(flows.iter().any(|f| f.again > 0), "nothing was lost");
}

#[test]
fn when_nothing_arrives_any_more_both_sides_end_and_keep_what_there_is() {
    let Some(network) = Network::new() else {
        return;
    };
    let endless = Closed {
        sessions: 5,
        up: 100,
        down: 20_000,
    };
    let server = network.inside(server);
    let to = target(&server);
    let role = Role::Client(client_of(vec![to], endless, Play::default()));
    let client = network.inside(move || Run::new(config(role)).unwrap());
    agreed(&client);
    client.start();
    until(|| client.statistics().counts.done > 100);
    network.run("iptables", "-A INPUT -j DROP").unwrap();
    // Their controllers still reach both of them.
    let alive = || {
        client.renew(Dur::from_secs(2));
        server.renew(Dur::from_secs(2));
    };
    until(|| {
        alive();
        let [a, b] = [&client, &server].map(Run::statistics);
        a.parties == 0 && b.parties == 0 && b.open == 0
    });
    assert!(client.is_running() && server.is_running());
    // The path works again: both agree again, although the server was never notified that the first agreement ended.
    network.run("iptables", "-D INPUT -j DROP").unwrap();
    let before = client.statistics().counts.done;
    until(|| {
        alive();
        client.statistics().counts.done > before + 1_000
    });
    // Wait for longer than the kernel needs to give up on unacknowledged data of the old connection. That must not
    // affect the new lease.
    let (before, begun) = (client.statistics().counts, std::time::Instant::now());
    until(|| {
        alive();
        begun.elapsed() > std::time::Duration::from_secs(3)
    });
    let after = client.statistics().counts;
    assert_eq!(
        (after.failed, after.lost_parties),
        (before.failed, before.lost_parties)
    );
    let counts = client.stop().counts;
    let flows = client.flows(0, usize::MAX).flows.len() as u64;
    assert!(counts.done > 100 && flows == counts.done + counts.failed + counts.unfinished);
}
