//! Builds a model from the measured distributions of a busy link, instead of packets.
//!
//! ns-2 includes, with its empirical web model, distributions measured at the access link of USC/ISI (K.
//! Lan & J. Heidemann, "Rapid model parameterization from traffic measurements", ACM TOMACS 12(3), 2002).
//! There is one file per quantity, with value, cumulative count and cumulative probability per line. Names
//! and units follow the scripts that made them (ns-2.35, `indep-utils/model-gen`: `RAMP`, `outputCDF`,
//! `delay.awk`). A value is the upper edge of its bin:
//!
//! | file | what | unit |
//! |---|---|---|
//! | `…sess.inter` | between starts of sessions | s |
//! | `…pagecnt`, `…fileno` | pages or files per session | – |
//! | `…idle` | user's pause between pages, above 1 s | s |
//! | `…file.inter` | between starts of files | s |
//! | `…pagesize` | all responses of a page | KiB |
//! | `ftp…size` | file | kB |
//! | `…req` | request | KiB |
//! | `…delay` | half the round trip between tap and host | s |
//! | `…BW` | bottleneck beyond the tap | Mbit/s |
//! | `…winc`, `…wins` | window in the SYN of client and server | KiB |
//! | `inbound.server` | which of the remote servers | – |
//!
//! "Inbound" is data into the site: local users of remote servers. "Outbound" is remote users of the
//! site's own server. Not used: `obj` (between objects of a page: ns-2's script also fetches a page as one
//! object), `persist`, `mtu`.

use swell_base::{Code, Dur, Rate, Stream, Warning};
use swell_traffic::{
    Class, Connection, Exchange, Group, Load, Model, Parameters, Path, Provenance, Session, Totals,
    Turn, Wire,
};

/// Duration of the model, seconds.
const DURATION: f64 = 600.0;
/// Seconds of sessions drawn before the model starts. Nearly all sessions are shorter (the longest have
/// 637 pages, 45 s apart on average).
const HISTORY: f64 = 43_200.0;
/// Maximum number of pages or files of one kind to draw: about fifteen times the busiest kind of the ISI
/// trace. Sessions a millisecond apart would take minutes and be meaningless.
const MAX_PAGES: u64 = 2_000_000;

/// The largest accepted values, by quantity, in its unit. Sums of them fit their integers.
mod most {
    /// Pauses and times between starts: eleven days.
    pub const SECONDS: u32 = 1_000_000;
    /// Pages or files of a session.
    pub const COUNT: u32 = 1_000_000;
    /// A page, file or request: a terabyte.
    pub const KILOBYTES: u32 = 1_000_000_000;
    /// A receive window: a gigabyte, the maximum of RFC 7323.
    pub const WINDOW: u32 = 1_048_576;
    /// Half a round trip: 1000 s.
    pub const DELAY: u32 = 1_000;
    /// A bottleneck: a terabit per second.
    pub const MEGABITS: u32 = 1_000_000;
    /// Remote servers: each is a path in the model.
    pub const SERVERS: u32 = 100_000;
}

/// Why no model could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CdfError {
    /// A distribution is not among the files.
    #[error("no file whose name ends in `{0}`")]
    Missing(String),
    /// A line that is not a value, a count and a probability, in increasing order.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// File name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A value that is implausibly large.
    #[error("{file}, line {line}: a value above {most}")]
    TooLarge {
        /// File name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The largest value of this quantity.
        most: u32,
    },
    /// So many or so long sessions that drawing them would take too long.
    #[error(
        "{class} {side}: {pages} pages or files in twelve hours by the times between sessions and \
         their lengths; {MAX_PAGES} at most"
    )]
    TooBusy {
        /// `www` or `ftp`.
        class: &'static str,
        /// `inbound` or `outbound`.
        side: &'static str,
        /// Expected number of pages or files.
        pages: u64,
    },
}

/// A measured distribution.
#[derive(Debug)]
struct Cdf {
    /// Value (upper edge of a bin) and cumulative probability.
    points: Vec<(f64, f64)>,
    /// Bin width.
    bin: f64,
}

impl Cdf {
    /// Parses a distribution of values up to `most`, in bins `bin` wide.
    fn parse(file: &str, text: &str, bin: f64, most: u32) -> Result<Cdf, CdfError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (i, line) in text.lines().enumerate().filter(|l| !l.1.trim().is_empty()) {
            let bad = |reason| CdfError::Line {
                file: file.into(),
                line: i + 1,
                reason,
            };
            let mut fields = line.split_whitespace().map(str::parse::<f64>);
            let (Some(Ok(value)), Some(Ok(_)), Some(Ok(p)), None) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return Err(bad("not a value, a count and a probability"));
            };
            if !(value.is_finite() && value >= 0.0 && (0.0..=1.0 + 1e-9).contains(&p)) {
                return Err(bad("a negative value or a probability outside 0 to 1"));
            }
            if value > f64::from(most) {
                return Err(CdfError::TooLarge {
                    file: file.into(),
                    line: i + 1,
                    most,
                });
            }
            if points.last().is_some_and(|l| l.0 >= value || l.1 > p) {
                return Err(bad("values or probabilities do not increase"));
            }
            points.push((value, p));
        }
        match points.last() {
            Some(last) if last.1 > 0.999 => Ok(Cdf { points, bin }),
            _ => Err(CdfError::Line {
                file: file.into(),
                line: text.lines().count(),
                reason: "the distribution does not end at 1",
            }),
        }
    }

    /// Draws the upper edge of a bin.
    fn edge(&self, rng: &mut Stream) -> f64 {
        let u = rng.uniform();
        let i = self.points.partition_point(|p| p.1 <= u);
        self.points[i.min(self.points.len() - 1)].0
    }

    /// The mean of `of` over the upper edges.
    fn mean(&self, of: impl Fn(f64) -> f64) -> f64 {
        let mut below = 0.0;
        let mut sum = 0.0;
        for &(value, p) in &self.points {
            sum += of(value) * (p - below);
            below = p;
        }
        // `edge` draws the last value for the probability missing to 1.
        sum + self.points.last().map_or(0.0, |l| of(l.0) * (1.0 - below))
    }

    /// Draws a value uniformly within its bin.
    fn draw(&self, rng: &mut Stream) -> f64 {
        (self.edge(rng) - self.bin * rng.uniform()).max(0.0)
    }
}

/// The distributions of one kind of traffic: web or FTP, inbound or outbound.
struct Kind {
    class: u32,
    outside: bool,
    between_sessions: Cdf,
    count: Cdf,
    pause: Cdf,
    size: Cdf,
    /// Bytes per unit of `size`.
    unit: f64,
    request: Option<Cdf>,
    client_window: Cdf,
    server_window: Cdf,
    delay: Cdf,
    rate: Cdf,
    /// Remote servers by popularity, for local users; `None` for remote users.
    servers: Option<Cdf>,
}

impl Kind {
    /// The time to the next session, given a drawn value. A gap of zero would never end; bins are at least
    /// a millisecond wide.
    fn gap(drawn: f64) -> f64 {
        drawn.max(0.000_5)
    }

    /// Checks that drawing it terminates in reasonable time.
    fn check(&self) -> Result<(), CdfError> {
        let sessions = (HISTORY + DURATION) / self.between_sessions.mean(Kind::gap);
        let pages = (sessions * self.count.mean(|n| n.max(1.0))) as u64;
        if pages <= MAX_PAGES {
            return Ok(());
        }
        Err(CdfError::TooBusy {
            class: ["www", "ftp"][usize::from(self.class == 1)],
            side: ["inbound", "outbound"][usize::from(self.outside)],
            pages,
        })
    }
}

/// Makes the model of `files`, given as (name, text). `provenance` records their origin.
///
/// Sessions arrive at the measured rate for twelve hours and ten minutes. The model is what a tap would
/// have seen of them in the last ten minutes; sessions that cross its edges are cut. All quantities are
/// drawn independently, because the files hold no joint distribution.
///
/// # Errors
/// If a file is missing or is not such a distribution, or if a value or the traffic is implausibly large.
pub fn model(
    files: &[(String, String)],
    name: &str,
    provenance: Provenance,
    seed: u64,
) -> Result<Model, CdfError> {
    let cdf = |suffix: &str, bin: f64, most: u32| {
        let (file, text) = files
            .iter()
            .find(|f| f.0.ends_with(suffix))
            .ok_or_else(|| CdfError::Missing(suffix.into()))?;
        Cdf::parse(file, text, bin, most)
    };
    // Bins as RAMP made them: 1 or 10 ms, 0.1 s and 1 s for pauses, 1 KiB, 1 kB, 1 kbit/s.
    let web = |long: &str, short: &str, outside: bool| -> Result<Kind, CdfError> {
        Ok(Kind {
            class: 0,
            outside,
            between_sessions: cdf(&format!("www.{short}.sess.inter.cdf"), 0.001, most::SECONDS)?,
            count: cdf(&format!("www.{short}.pagecnt.cdf"), 0.0, most::COUNT)?,
            pause: cdf(&format!("www.{short}.idle.cdf"), 0.1, most::SECONDS)?,
            size: cdf(&format!("www.{short}.pagesize.cdf"), 1.0, most::KILOBYTES)?,
            unit: 1024.0,
            request: Some(cdf(&format!("www.{short}.req.cdf"), 1.0, most::KILOBYTES)?),
            client_window: cdf(&format!("www.{long}.winc.cdf"), 0.0, most::WINDOW)?,
            server_window: cdf(&format!("www.{long}.wins.cdf"), 0.0, most::WINDOW)?,
            delay: cdf(&format!("www.{long}.delay.cdf"), 0.001, most::DELAY)?,
            rate: cdf(&format!("www.{long}.BW.cdf"), 0.001, most::MEGABITS)?,
            servers: (!outside)
                .then(|| cdf("www.inbound.server.cdf", 0.0, most::SERVERS))
                .transpose()?,
        })
    };
    let ftp = |long: &str, outside: bool| -> Result<Kind, CdfError> {
        Ok(Kind {
            class: 1,
            outside,
            between_sessions: cdf(&format!("ftp.{long}.sess.inter.cdf"), 0.001, most::SECONDS)?,
            count: cdf(&format!("ftp.{long}.fileno.cdf"), 0.0, most::COUNT)?,
            pause: cdf(&format!("ftp.{long}.file.inter.cdf"), 0.001, most::SECONDS)?,
            size: cdf(&format!("ftp.{long}.size.cdf"), 1.0, most::KILOBYTES)?,
            unit: 1000.0,
            request: None,
            client_window: cdf(&format!("ftp.{long}.winc.cdf"), 0.0, most::WINDOW)?,
            server_window: cdf(&format!("ftp.{long}.wins.cdf"), 0.0, most::WINDOW)?,
            delay: cdf(&format!("ftp.{long}.delay.cdf"), 0.001, most::DELAY)?,
            rate: cdf(&format!("ftp.{long}.BW.cdf"), 0.001, most::MEGABITS)?,
            servers: (!outside)
                .then(|| cdf("ftp.inbound.server.cdf", 0.0, most::SERVERS))
                .transpose()?,
        })
    };
    let kinds = [
        web("inbound", "in", false)?,
        web("outbound", "out", true)?,
        ftp("inbound", false)?,
        ftp("outbound", true)?,
    ];
    for kind in &kinds {
        kind.check()?;
    }
    let mut rng = Stream::new(seed, "isi");
    let mut town = Town::default();
    for kind in &kinds {
        town.populate(kind, &mut rng);
    }
    Ok(town.into_model(name, provenance))
}

/// Sessions and paths drawn so far.
#[derive(Default)]
struct Town {
    sessions: Vec<Session>,
    clients: Vec<Path>,
    servers: Vec<Path>,
    bytes: [u64; 2],
}

impl Town {
    fn populate(&mut self, kind: &Kind, rng: &mut Stream) {
        let first_server = self.servers.len() as u32;
        match &kind.servers {
            Some(popularity) => {
                // Rounded as where a server is drawn, so that each number drawn has its path.
                let most = popularity.points.last().map_or(1.0, |p| p.0);
                let n = most.round().max(1.0) as usize;
                for _ in 0..n {
                    self.servers.push(remote(kind, rng));
                }
            }
            None => self.servers.push(local()),
        }
        let mut start = 0.0;
        while start < HISTORY + DURATION {
            start += Kind::gap(kind.between_sessions.edge(rng));
            self.session(kind, start - HISTORY, first_server, rng);
        }
    }

    /// Draws a session and keeps the part within the model's duration.
    fn session(&mut self, kind: &Kind, start: f64, first_server: u32, rng: &mut Stream) {
        let count = kind.count.edge(rng).round() as u64;
        // As in ns-2, each page of a session comes from an independently drawn server.
        let mut at = start;
        let mut groups: Vec<Group> = Vec::new();
        let mut first = 0.0;
        let mut last = 0.0;
        for i in 0..count.max(1) {
            if i > 0 {
                at += kind.pause.draw(rng);
            }
            if at >= DURATION {
                break;
            }
            let bytes = (kind.size.draw(rng) * kind.unit).ceil().max(1.0) as u64;
            let request = match &kind.request {
                Some(r) => (r.draw(rng) * 1024.0).ceil().max(1.0) as u64,
                None => 0,
            };
            let server = kind
                .servers
                .as_ref()
                .map_or(0, |s| (s.edge(rng).round() as u32).saturating_sub(1));
            let [client_window, server_window] = [&kind.client_window, &kind.server_window]
                .map(|w| (w.edge(rng) * 1024.0).min(65_535.0) as u32);
            if at < 0.0 {
                continue;
            }
            if groups.is_empty() {
                first = at;
            }
            let think = if groups.is_empty() {
                Dur::ZERO
            } else {
                Dur::from_micros(((at - last) * 1e6) as u64)
            };
            last = at;
            let up = usize::from(kind.outside);
            self.bytes[up] += request;
            self.bytes[1 - up] += bytes;
            groups.push(Group {
                think,
                connections: vec![Connection {
                    gap: Dur::ZERO,
                    server: first_server + server,
                    exchange: Exchange::Sequential(vec![Turn {
                        request,
                        server_think: Dur::ZERO,
                        response: bytes,
                        client_think: Dur::ZERO,
                    }]),
                    client_window,
                    server_window,
                    wire: Wire::default(),
                    writes: Default::default(),
                    waits: Vec::new(),
                    left_censored: false,
                    right_censored: false,
                    overlap: None,
                }],
            });
        }
        if groups.is_empty() {
            return;
        }
        self.clients.push(if kind.outside {
            remote(kind, rng)
        } else {
            local()
        });
        self.sessions.push(Session {
            class: kind.class,
            start: Dur::from_micros((first * 1e6) as u64),
            weight: 1.0,
            client: self.clients.len() as u32 - 1,
            outside: kind.outside,
            lasted: None,
            groups,
        });
    }

    fn into_model(mut self, name: &str, mut provenance: Provenance) -> Model {
        self.sessions.sort_by_key(|s| s.start);
        if provenance.made_by.is_empty() {
            provenance.made_by = concat!("swell-learn ", env!("CARGO_PKG_VERSION")).into();
        }
        let connections = self.sessions.iter().flat_map(Session::connections).count() as u64;
        Model {
            name: name.into(),
            provenance,
            warnings: vec![
                Warning::warning(
                    Code::NoJointInformation,
                    "the distributions were measured one by one: sizes, pauses, windows and paths are \
                     drawn independently of each other",
                ),
                Warning::warning(
                    Code::NotATrace,
                    "made from distributions, not from packets: there is no load over time and no \
                     log-scale diagram to compare with; totals are application bytes of the drawn \
                     sessions",
                ),
                Warning::warning(
                    Code::ServerThinkUnknown,
                    "the servers' think times were not measured: they are zero; nor were losses: \
                     the paths lose nothing",
                ),
                Warning::note(
                    Code::PagesAreSingleObjects,
                    "a page is one request and one response on one connection, as in ns-2's script",
                ),
                Warning::note(
                    Code::SizesWithinBins,
                    "sizes are known to a kilobyte (1024 bytes for the web, 1000 for FTP) and drawn \
                     uniformly within",
                ),
                Warning::note(
                    Code::PathsInside,
                    "hosts inside the site have round trips of 1 ms and 100 Mbit/s: assumed, not measured",
                ),
                Warning::note(
                    Code::PausesBetweenFiles,
                    "FTP files have start-to-start times, used as pauses: files that take long delay \
                     those after them",
                ),
            ],
            duration: Dur::from_secs_f64(DURATION),
            parameters: Parameters {
                group_timeout: Dur::from_secs(1),
                session_timeout: Dur::from_secs(1200),
                quiet: Dur::from_millis(500),
            },
            totals: Totals {
                bytes: self.bytes,
                tcp_connections: connections,
                ..Totals::default()
            },
            load: Load::default(),
            classes: ["http", "ftp"]
                .map(|c| Class {
                    name: c.into(),
                    udp: false,
                })
                .into(),
            client_paths: self.clients,
            server_paths: self.servers,
            sessions: self.sessions,
        }
    }
}

/// A host beyond the tap. The measured bottleneck applies to the data's direction; the other direction is
/// assumed to be as fast (Swing's assumption).
fn remote(kind: &Kind, rng: &mut Stream) -> Path {
    let rate = Rate::from_bps_f64((kind.rate.draw(rng) * 1e6).max(1000.0));
    Path {
        rtt: Dur::from_micros((2e6 * kind.delay.draw(rng)).round() as u64),
        up: Some(rate),
        down: Some(rate),
        rtt_samples: 1,
        capacity_samples: 1,
        ..local()
    }
}

/// A host inside the site.
fn local() -> Path {
    Path {
        rtt: Dur::from_millis(1),
        up: Some(Rate::from_bps(100_000_000)),
        down: Some(Rate::from_bps(100_000_000)),
        loss_up: 0.0,
        loss_down: 0.0,
        rtt_samples: 0,
        capacity_samples: 0,
        loss_samples: 0,
    }
}

#[cfg(test)]
#[path = "model/tests.rs"]
mod tests;
