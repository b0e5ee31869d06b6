//! The network in which a world is captured, and the changes to it.

use std::fmt::Write as _;

/// Hosts on the left in packet files. An observer of a link knows its sides.
pub const INSIDE: [&str; 2] = ["10.0.0.0/8", "fd00::/8"];

/// A network, a foreground and a factor on the background.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Of the base rates.
    pub rate: f64,
    /// One-way delay of the bottleneck, ms.
    pub delay: u32,
    pub queue: &'static str,
    pub qdisc: &'static str,
    /// Congestion control of background and foreground.
    pub congestion: [&'static str; 2],
    pub object: &'static str,
    /// Of the background.
    pub load: f64,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            rate: 1.0,
            delay: 10,
            queue: "1BDP",
            qdisc: "fifo",
            congestion: ["cubic", "cubic"],
            object: "1MB",
            load: 1.0,
        }
    }
}

/// A change by name: seven kinds of question, three or four of each.
pub fn all() -> Vec<(&'static str, Setting)> {
    let base = Setting::default;
    vec![
        (
            "rate × 0.6",
            Setting {
                rate: 0.6,
                ..base()
            },
        ),
        (
            "rate × 0.75",
            Setting {
                rate: 0.75,
                ..base()
            },
        ),
        (
            "rate × 1.5",
            Setting {
                rate: 1.5,
                ..base()
            },
        ),
        (
            "rate × 3",
            Setting {
                rate: 3.0,
                ..base()
            },
        ),
        (
            "queue 0.25 BDP",
            Setting {
                queue: "0.25BDP",
                ..base()
            },
        ),
        (
            "queue 4 BDP",
            Setting {
                queue: "4BDP",
                ..base()
            },
        ),
        (
            "queue 20 packets",
            Setting {
                queue: "20pkt",
                ..base()
            },
        ),
        (
            "CoDel",
            Setting {
                qdisc: "codel",
                queue: "1000pkt",
                ..base()
            },
        ),
        (
            "FQ-CoDel",
            Setting {
                qdisc: "fq-codel",
                queue: "1000pkt",
                ..base()
            },
        ),
        (
            "PIE",
            Setting {
                qdisc: "pie",
                queue: "1000pkt",
                ..base()
            },
        ),
        (
            "RED",
            Setting {
                qdisc: "red",
                queue: "4BDP",
                ..base()
            },
        ),
        ("RTT − 16 ms", Setting { delay: 2, ..base() }),
        (
            "RTT + 40 ms",
            Setting {
                delay: 30,
                ..base()
            },
        ),
        (
            "RTT + 160 ms",
            Setting {
                delay: 90,
                ..base()
            },
        ),
        (
            "background Reno",
            Setting {
                congestion: ["reno", "cubic"],
                ..base()
            },
        ),
        (
            "background BBR",
            Setting {
                congestion: ["bbr", "cubic"],
                ..base()
            },
        ),
        (
            "foreground Reno",
            Setting {
                congestion: ["cubic", "reno"],
                ..base()
            },
        ),
        (
            "foreground BBR",
            Setting {
                congestion: ["cubic", "bbr"],
                ..base()
            },
        ),
        (
            "objects of 10 kB",
            Setting {
                object: "10kB",
                ..base()
            },
        ),
        (
            "objects of 100 kB",
            Setting {
                object: "100kB",
                ..base()
            },
        ),
        (
            "objects of 5 MB",
            Setting {
                object: "5MB",
                ..base()
            },
        ),
        (
            "load × 0.5",
            Setting {
                load: 0.5,
                ..base()
            },
        ),
        (
            "load × 1.3",
            Setting {
                load: 1.3,
                ..base()
            },
        ),
        (
            "load × 1.6",
            Setting {
                load: 1.6,
                ..base()
            },
        ),
    ]
}

/// Browsers, and how many connections each keeps.
#[derive(Clone, Copy, Debug)]
pub struct Browsers {
    pub clients: u32,
    pub connections: u32,
}

/// The background beside the foreground.
#[derive(Clone, Debug)]
pub enum Beside<'a> {
    Nobody,
    /// A model, by name or path, and its sessions.
    Model(&'a str, f64),
    /// Browsers that load this HAR file over kept connections.
    Pages(&'a str, Browsers),
    /// A packet file.
    Replay(&'a str),
    /// Poisson packets of these rates, bits per second, up and down.
    Poisson([f64; 2]),
}

impl Setting {
    /// The experiment file of one run: `down` and `up` are the base rates in Mbit/s, the foreground begins after
    /// `warmup` seconds, if there is one.
    pub fn file(
        &self,
        rates: [f64; 2],
        beside: &Beside<'_>,
        foreground: bool,
        [warmup, duration]: [u32; 2],
    ) -> String {
        let [up, down] = rates.map(|r| r * self.rate);
        let (kind, object) = (if foreground { "web" } else { "none" }, self.object);
        let [of_background, of_foreground] = self.congestion;
        let mut text = format!(
            r#"name = "counterfactual"
[network]
rate = "{down}Mbit"
delay = "{delay}ms"
queue = "{queue}"
qdisc = "{qdisc}"
rtt = "{rtt}ms"
[network.up]
rate = "{up}Mbit"
[run]
replications = 1
warmup = "{warmup}s"
duration = "{duration}s"
[[foreground]]
name = "fetch"
kind = "{kind}"
"#,
            delay = self.delay,
            queue = self.queue,
            qdisc = self.qdisc,
            // The access paths contribute 20 ms to the RTT.
            rtt = 2 * self.delay + 20,
        );
        if foreground {
            let _ = write!(
                text,
                "object = \"{object}\"\nthink = \"500ms\"\ntcp = {{ congestion = \"{of_foreground}\" }}\n"
            );
        }
        let _ = write!(text, "[[background]]\nname = \"beside\"\n");
        let load = self.load;
        let _ = match beside {
            Beside::Nobody => writeln!(text, "kind = \"none\""),
            Beside::Model(model, sessions) => write!(
                text,
                "kind = \"learnt\"\nmodel = \"{model}\"\nsessions = {}\ntcp = {{ congestion = \"{of_background}\" }}\n",
                sessions * load
            ),
            Beside::Pages(
                page,
                Browsers {
                    clients,
                    connections,
                },
            ) => writeln!(
                text,
                "kind = \"page\"\npage = \"{page}\"\nkeep = true\nthink = \"4s\"\nclients = {}\n\
                 connections = {connections}\ntcp = {{ congestion = \"{of_background}\" }}",
                (f64::from(*clients) * load).round().max(1.0)
            ),
            Beside::Replay(trace) => write!(
                text,
                "kind = \"replay\"\ntrace = \"{trace}\"\ninside = {INSIDE:?}\nstretch = {}\n",
                1.0 / load
            ),
            Beside::Poisson([bps_up, bps_down]) => write!(
                text,
                "kind = \"poisson\"\nrate = \"{}bit\"\nrate_up = \"{}bit\"\n",
                // Experiment files reject rates above that of the link.
                (bps_down * load).min(down * 1e6).round(),
                (bps_up * load).min(up * 1e6).round()
            ),
        };
        text
    }
}
