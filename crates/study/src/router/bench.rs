//! What is run: a load, a table, and whether the router's output line limits it.

use swell_base::{Dur, Rate};

use super::numbers::{NUMBERS, Raw, numbers};
use swell_experiment::run::grid::Cell;

/// Sizes of tables in the paper.
pub const TABLES: [u32; 4] = [32, 1_024, 32_768, 65_536];
/// The table of everything that is not about tables.
pub const TABLE: u32 = 32_768;
/// The paper's longer bursts.
pub const BURSTS: [u32; 4] = [232, 465, 697, 930];
/// What is offered in small packets on an output line that does not limit: more than the generator can do, so that it does
/// what it can.
pub const FLOOD: Rate = Rate::from_bps(200_000_000);
/// Tables that are flooded: the smallest and the largest.
pub const FLOODED: [u32; 2] = [TABLES[0], TABLES[3]];

/// Sizes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// All of 40 bytes.
    Small,
    /// All of 1500 bytes.
    Large,
    /// 61 % of 40 bytes, 17 % of 576, 22 % of 1500.
    Trimodal,
}

impl Mix {
    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Small => "40",
            Mix::Large => "1500",
            Mix::Trimodal => "trimodal",
        }
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Sessions learnt from flow records, over TCP.
    Sessions,
    /// A constant-spacing generator.
    Constant {
        /// How large packets are.
        mix: Mix,
        /// How many leave back to back.
        burst: u32,
    },
}

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// About 60 % of the output line.
    Low,
    /// About 90 % of it.
    High,
    /// The output line is as fast as the machine.
    Bare,
}

impl Regime {
    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Regime::Low => "low",
            Regime::High => "high",
            Regime::Bare => "bare",
        }
    }

    /// What sessions are meant to offer on an output line.
    pub fn target(self, line: Rate) -> Rate {
        match self {
            Regime::Low => line.scale(0.6),
            Regime::High | Regime::Bare => line.scale(0.9),
        }
    }
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Who sends.
    pub sent: Sent,
    /// How much.
    pub regime: Regime,
    /// Entries of the router's table.
    pub routes: u32,
}

impl Bench {
    /// Learnt sessions.
    pub fn sessions(regime: Regime, routes: u32) -> Bench {
        Bench {
            sent: Sent::Sessions,
            regime,
            routes,
        }
    }

    /// A constant-spacing generator.
    pub fn constant(mix: Mix, burst: u32, regime: Regime, routes: u32) -> Bench {
        Bench {
            sent: Sent::Constant { mix, burst },
            regime,
            routes,
        }
    }

    /// Whether it floods the router with small packets: its load is [`FLOOD`], not that of the sessions.
    pub fn floods(&self) -> bool {
        let small = matches!(
            self.sent,
            Sent::Constant {
                mix: Mix::Small,
                ..
            }
        );
        small && self.regime == Regime::Bare
    }

    /// In words.
    pub fn name(&self) -> String {
        match self.sent {
            Sent::Sessions => "learnt sessions".to_owned(),
            Sent::Constant { mix, burst: 1 } => format!("constant, {}", bytes(mix)),
            Sent::Constant { mix, burst } => format!("bursts of {burst}, {}", bytes(mix)),
        }
    }
}

fn bytes(mix: Mix) -> String {
    match mix {
        Mix::Trimodal => "trimodal".to_owned(),
        _ => format!("{} B", mix.name()),
    }
}

/// The runs with sessions: they come first, for the generator is to offer what they do.
pub fn first(quick: bool) -> Vec<Bench> {
    if quick {
        return vec![
            Bench::sessions(Regime::Low, TABLE),
            Bench::sessions(Regime::High, TABLE),
        ];
    }
    let regimes = [Regime::Low, Regime::High];
    let each = |regime| TABLES.map(|routes| Bench::sessions(regime, routes));
    let mut all: Vec<Bench> = regimes.into_iter().flat_map(each).collect();
    all.push(Bench::sessions(Regime::Bare, TABLE));
    all
}

/// The runs with the generator.
pub fn second(quick: bool) -> Vec<Bench> {
    let constant = |mix, burst| Bench::constant(mix, burst, Regime::High, TABLE);
    let mut all: Vec<Bench> = first(quick)
        .into_iter()
        .map(|b| Bench::constant(Mix::Large, 1, b.regime, b.routes))
        .collect();
    let bursts: &[u32] = if quick { &BURSTS[3..] } else { &BURSTS };
    all.extend(bursts.iter().map(|&burst| constant(Mix::Large, burst)));
    all.push(constant(Mix::Small, 1));
    if !quick {
        all.push(constant(Mix::Trimodal, 1));
        let flood = |routes| Bench::constant(Mix::Small, 1, Regime::Bare, routes);
        all.extend(FLOODED.map(flood));
    }
    all
}

/// What all runs have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Rate of the output line; headers of the link layer count.
    pub line: Rate,
    /// Packets of 1500 bytes that wait for it.
    pub queue: u32,
    /// How long each run is.
    pub span: Dur,
    /// What of it does not count: queues and connections begin empty.
    pub settle: Dur,
    /// Between two looks.
    pub every: Dur,
    /// What was learnt, by name.
    pub model: String,
    /// Hosts as the kernel makes them, not with Reno and windows of 64 KB at most.
    pub today: bool,
}

/// Plays a run with so much offered, and says what was seen; `None` where that failed.
pub type Player<'a> = &'a (dyn Fn(&Bench, Rate) -> Option<Raw> + Sync);

/// A run of the grid.
#[derive(Clone, Copy)]
pub struct BenchCell<'a> {
    /// What is run.
    pub bench: Bench,
    /// What is to be offered.
    pub load: Rate,
    /// What all have in common.
    pub setting: &'a Setting,
    /// Who does it.
    pub player: Player<'a>,
}

impl Cell for BenchCell<'_> {
    const KEYS: &'static [&'static str] = &["sent", "burst", "regime", "routes", "load_kbps"];
    const NUMBERS: &'static [&'static str] = NUMBERS;

    fn key(&self) -> Vec<String> {
        let (sent, burst) = match self.bench.sent {
            Sent::Sessions => ("sessions", "-".to_owned()),
            Sent::Constant { mix, burst } => (mix.name(), burst.to_string()),
        };
        vec![
            sent.to_owned(),
            burst,
            self.bench.regime.name().to_owned(),
            self.bench.routes.to_string(),
            (self.load.bps() / 1_000).to_string(),
        ]
    }

    fn settings(&self) -> String {
        format!("{:?} 1", self.setting)
    }

    fn cost(&self) -> f64 {
        1.0
    }

    fn run(&self) -> Vec<f64> {
        match (self.player)(&self.bench, self.load) {
            Some(raw) => numbers(&raw, self.setting.settle),
            None => vec![f64::NAN; NUMBERS.len()],
        }
    }
}
