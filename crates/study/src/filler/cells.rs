//! Everything the study runs, as cells of one grid.

use swell_base::{Dur, QueueLimit, Rate};
use swell_path::{Classifier, Discipline, DrrConfig, FqCoDelConfig, PriorityConfig};

use super::lineup::FillerKind;
use super::run::{Account, Filler, Outcome, Setting, run};
use super::{Trace, capacity_left};
use crate::grid::Cell;

/// The paper's bandwidths, Mbit/s, at 20 ms.
pub const RATES: [u32; 6] = [3, 4, 6, 8, 10, 15];
/// The paper's latencies, milliseconds, at 10 Mbit/s.
pub const LATENCIES: [u32; 6] = [3, 10, 20, 30, 40, 250];
/// The paper's base setting, Mbit/s and milliseconds.
pub const BASE: (u32, u32) = (10, 20);
/// The filler buffers of the paper's first round, thousands of bytes.
pub const BUFFERS: [u32; 4] = [4, 8, 16, 32];

/// How the central link treats the two kinds of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Pre-existing traffic first.
    Priority,
    /// Deficit round robin that gives filler one part in twenty while both have something to send:
    /// the lower-effort behaviour (RFC 8622) where starving is not allowed.
    LowerEffort,
    /// One queue for all.
    Fifo,
    /// A controlled-delay queue for each flow.
    FqCoDel,
}

impl Scheduler {
    /// As in tables.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Priority => "priority",
            Scheduler::LowerEffort => "le-drr",
            Scheduler::Fifo => "fifo",
            Scheduler::FqCoDel => "fq-codel",
        }
    }

    fn discipline(self, upper: QueueLimit, lower: QueueLimit) -> Discipline {
        let classifier = Classifier::Tag {
            foreground: 0,
            background: 1,
        };
        match self {
            Scheduler::Priority => Discipline::Priority(PriorityConfig {
                classifier,
                bands: 2,
                limits: vec![upper, lower],
            }),
            Scheduler::LowerEffort => Discipline::Drr(DrrConfig {
                classifier,
                queues: 2,
                // Nineteen to one, each at least a full packet.
                quantum: 28_500,
                quanta: vec![28_500, 1_500],
            }),
            Scheduler::Fifo => Discipline::Fifo,
            Scheduler::FqCoDel => Discipline::FqCoDel(FqCoDelConfig::default()),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct FillerCell<'a> {
    /// Pre-existing traffic.
    pub trace: &'a Trace,
    /// Mbit/s.
    pub rate: u32,
    /// Milliseconds.
    pub latency: u32,
    /// Filler buffer in thousands of bytes; none: 1.3 bandwidth-delay products.
    pub buffer: Option<u32>,
    /// How the link treats the two.
    pub scheduler: Scheduler,
    /// The filler's transport; none: no filler.
    pub filler: Option<&'static FillerKind>,
    /// The filler sends the other way.
    pub reversed: bool,
}

impl<'a> FillerCell<'a> {
    /// The paper's base setting without filler.
    pub fn base(trace: &'a Trace) -> FillerCell<'a> {
        FillerCell {
            trace,
            rate: BASE.0,
            latency: BASE.1,
            buffer: None,
            scheduler: Scheduler::Priority,
            filler: None,
            reversed: false,
        }
    }

    /// On a link of this rate and latency.
    #[must_use]
    pub fn link(self, rate: u32, latency: u32) -> FillerCell<'a> {
        FillerCell {
            rate,
            latency,
            ..self
        }
    }

    /// With the paper's filler, or without.
    #[must_use]
    pub fn filler(self, there: bool) -> FillerCell<'a> {
        self.over(there.then(FillerKind::paper))
    }

    /// With filler over this transport.
    #[must_use]
    pub fn over(self, filler: Option<&'static FillerKind>) -> FillerCell<'a> {
        FillerCell { filler, ..self }
    }

    /// With another scheduler.
    #[must_use]
    pub fn scheduler(self, scheduler: Scheduler) -> FillerCell<'a> {
        FillerCell { scheduler, ..self }
    }

    /// With the filler the other way.
    #[must_use]
    pub fn reversed(self) -> FillerCell<'a> {
        FillerCell {
            reversed: true,
            ..self
        }
    }

    /// With a fixed filler buffer, thousands of bytes.
    #[must_use]
    pub fn buffer(self, kilobytes: u32) -> FillerCell<'a> {
        FillerCell {
            buffer: Some(kilobytes),
            ..self
        }
    }

    /// Whether both are one run. Traces are told apart by their names.
    pub fn is(&self, other: &FillerCell<'_>) -> bool {
        let named = |c: &FillerCell<'_>| c.filler.map(|f| f.name);
        self.trace.name == other.trace.name
            && (self.rate, self.latency, self.buffer) == (other.rate, other.latency, other.buffer)
            && (self.scheduler, self.reversed) == (other.scheduler, other.reversed)
            && named(self) == named(other)
    }

    /// What is run.
    pub fn setting(&self) -> Setting {
        let rate = Rate::from_bps(u64::from(self.rate) * 1_000_000);
        let latency = Dur::from_millis(u64::from(self.latency));
        let mut setting = Setting::paper(rate, latency, None);
        if let Some(kilobytes) = self.buffer {
            setting.lower = QueueLimit::Packets(u64::from(kilobytes).max(1));
        }
        setting.discipline = self.scheduler.discipline(setting.upper, setting.lower);
        setting.filler = self.filler.map(|kind| Filler {
            transport: kind.config(),
            reversed: self.reversed,
        });
        setting
    }

    /// Does it.
    pub fn outcome(&self) -> Outcome {
        run(self.trace, &self.setting(), 1)
    }
}

impl Cell for FillerCell<'_> {
    const KEYS: &'static [&'static str] = &[
        "trace",
        "rate_mbps",
        "latency_ms",
        "buffer_kb",
        "scheduler",
        "filler",
        "reversed",
    ];
    const NUMBERS: &'static [&'static str] = NUMBERS;

    fn key(&self) -> Vec<String> {
        vec![
            self.trace.name.clone(),
            self.rate.to_string(),
            self.latency.to_string(),
            self.buffer
                .map_or_else(|| "1.3bdp".to_string(), |b| b.to_string()),
            self.scheduler.name().to_string(),
            self.filler.map_or("none", |k| k.name).to_string(),
            u8::from(self.reversed).to_string(),
        ]
    }

    fn settings(&self) -> String {
        // Volumes tell traces of one name apart.
        let loads = [0, 1].map(|d| self.trace.load(d));
        let seconds = self.trace.duration.as_secs_f64();
        format!("{:?} {loads:?} {seconds}", self.setting())
    }

    fn cost(&self) -> f64 {
        let share = if self.filler.is_some() {
            f64::from(self.rate) * 1e6
        } else {
            self.trace.load(0)
        };
        share * self.trace.duration.as_secs_f64()
    }

    fn run(&self) -> Vec<f64> {
        numbers(&self.outcome(), capacity_left(self.trace, self.rate))
    }
}

/// Names of the numbers of a cell. `pre`: pre-existing, `fil`: the filler's data, `ack`: its
/// acknowledgements; `fwd`: the trace's first direction, `rev` the other. Delays in milliseconds
/// include queue, transmission and latency of the central link.
pub const NUMBERS: &[&str] = &[
    "pre_fwd_packets",
    "pre_fwd_drop_pct",
    "pre_fwd_wait_ms",
    "pre_fwd_delay_ms",
    "pre_fwd_kbytes_per_s",
    "pre_fwd_wait_p50_ms",
    "pre_fwd_wait_p99_ms",
    "pre_rev_drop_pct",
    "pre_rev_delay_ms",
    "pre_rev_kbytes_per_s",
    "fil_packets",
    "fil_drop_pct",
    "fil_delay_ms",
    "fil_kbytes_per_s",
    "ack_delay_ms",
    "ack_kbytes_per_s",
    "spare_used",
];

fn numbers(o: &Outcome, left: f64) -> Vec<f64> {
    let pre = &o.present[0];
    let rev = &o.present[1];
    // The filler's data goes where more of its bytes go.
    let (data, ack) = if o.filler[1].kilobytes > o.filler[0].kilobytes {
        (&o.filler[1], &o.filler[0])
    } else {
        (&o.filler[0], &o.filler[1])
    };
    let waits = |a: &Account, q| a.tally.waits.quantile(q).as_secs_f64() * 1e3;
    vec![
        pre.packets as f64,
        pre.dropped * 100.0,
        pre.wait * 1e3,
        pre.delay * 1e3,
        pre.kilobytes,
        waits(pre, 0.5),
        waits(pre, 0.99),
        rev.dropped * 100.0,
        rev.delay * 1e3,
        rev.kilobytes,
        data.packets as f64,
        data.dropped * 100.0,
        data.delay * 1e3,
        data.kilobytes,
        ack.delay * 1e3,
        ack.kilobytes,
        data.kilobytes * 8e3 / left,
    ]
}

/// What the price of filler is asked of: a scheduler and a transport by name.
pub const PRICES: &[(Scheduler, &str)] = &[
    (Scheduler::Priority, "sack"),
    (Scheduler::LowerEffort, "sack"),
    (Scheduler::FqCoDel, "sack"),
    (Scheduler::Fifo, "sack"),
    (Scheduler::Fifo, "cubic"),
    (Scheduler::Fifo, "bbr"),
    (Scheduler::Fifo, "vegas"),
    (Scheduler::Fifo, "ledbat"),
    (Scheduler::Fifo, "ledbat++"),
    (Scheduler::Fifo, "tcp-lp"),
    (Scheduler::Fifo, "nice"),
];

/// Every cell for `traces`.
pub fn cells(traces: &[Trace]) -> Vec<FillerCell<'_>> {
    traces.iter().flat_map(cells_of).collect()
}

fn cells_of(trace: &Trace) -> Vec<FillerCell<'_>> {
    let base = FillerCell::base(trace);
    let by_rate = RATES.iter().map(|&rate| (rate, BASE.1));
    let by_latency = LATENCIES.iter().map(|&latency| (BASE.0, latency));
    let mut cells: Vec<FillerCell<'_>> = Vec::new();
    let mut add = |cell: FillerCell<'_>| {
        if !cells.iter().any(|c| c.is(&cell)) {
            cells.push(FillerCell { trace, ..cell });
        }
    };
    for (rate, latency) in by_rate.chain(by_latency) {
        let none = base.link(rate, latency);
        let filler = none.filler(true);
        add(none);
        add(filler.reversed());
        for kilobytes in BUFFERS {
            // The first round varied the buffer with everything else at its base, and found at other
            // latencies that 16 KB is too little.
            if (rate, latency) == BASE || (kilobytes == 16 && rate == BASE.0) {
                add(filler.buffer(kilobytes));
            }
        }
        add(filler);
    }
    for &(scheduler, name) in PRICES {
        let alone = base.scheduler(scheduler);
        add(alone);
        add(alone.over(FillerKind::named(name)));
    }
    cells
}
