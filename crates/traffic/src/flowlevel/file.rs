//! The flow-level model's file: one JSON object, plain or zstd-compressed. `docs/flow-model.md` describes
//! every field.

use std::fmt::Write as _;
use std::io::Read as _;

use serde::{Deserialize, Serialize};
use swell_base::{Dur, Warning};

use super::histogram::{Bucket, Histogram, LAST_BUCKET, range_of};
use super::model::{
    FlowModel, FlowTotals, Interval, LARGE, MAX_INTERVALS, Popularity, Profile, RatesBySize,
    Sampled, TcpSessions, UdpKind, UdpSources, size_class,
};
use super::{Sizes, record::nanos};
use crate::file::{MAX_BYTES, ModelError, ZSTD_MAGIC};
use crate::model::Provenance;

/// The value of the file's `format` key.
pub const FORMAT: &str = "swell-flow-model";
/// The version that this program writes, and the only one that it reads.
pub const VERSION: u64 = 1;

/// About thirty years, in microseconds.
const MAX_MICROS: u64 = 1_000_000_000_000_000;
/// The first bytes of a file, in which its format is named.
const HEAD: u64 = 256;
/// Archives are written once and read often.
const ZSTD_LEVEL: i32 = 19;

#[derive(Deserialize)]
struct Head {
    format: Option<serde_json::Value>,
    version: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u64,
    name: String,
    provenance: Provenance,
    warnings: Vec<Warning>,
    profile: String,
    interval: u64,
    start: i64,
    /// If missing, all intervals were observed completely.
    span: Option<[i64; 2]>,
    totals: FlowTotals,
    #[serde(default)]
    sampled: Vec<Sampled>,
    up: FileSizes,
    down: FileSizes,
    gaps: FileHistogram,
    sources: Vec<(u64, u64)>,
    destinations: Vec<(u64, u64)>,
    /// Missing in models made before rates were learnt.
    #[serde(default)]
    rates: FileHistogram,
    /// Missing in models made before the rates of long files were kept.
    #[serde(default)]
    rates_by_size: FileRates,
    intervals: Vec<(u64, u64, u64, u64)>,
    udp: Vec<FileUdp>,
}

/// Bucket, count, sum, minimum and maximum; the last two are omitted if all values of the bucket are
/// equal.
type FileHistogram = Vec<Vec<u64>>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSizes {
    complete: FileHistogram,
    censored: FileHistogram,
}

/// Classes of sizes with their rates.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRates {
    up: Vec<(u8, FileHistogram)>,
    down: Vec<(u8, FileHistogram)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileUdp {
    kind: String,
    sources: u64,
    flows: u64,
    packets: u64,
    bytes: u64,
    answers: u64,
    answer_bytes: u64,
    spacing: FileHistogram,
    /// Missing, like `pauses`, in models made before durations were learnt.
    #[serde(default)]
    durations: FileHistogram,
    #[serde(default)]
    pauses: FileHistogram,
    datagrams: FileHistogram,
    volumes: FileHistogram,
    lifetimes: FileHistogram,
    active: Vec<u64>,
}

impl FlowModel {
    /// Whether a file, plain or zstd-compressed, claims to be a flow-level model; it may be damaged.
    pub fn is_one(file: &[u8]) -> bool {
        let mut text = Vec::new();
        let text = if file.starts_with(&ZSTD_MAGIC) {
            // Damage is detected when the file is read.
            let _ = zstd::stream::read::Decoder::with_buffer(file)
                .and_then(|d| d.take(HEAD).read_to_end(&mut text));
            &text
        } else {
            &file[..file.len().min(HEAD as usize)]
        };
        let spaceless: Vec<u8> = text
            .iter()
            .copied()
            .filter(|b| !b.is_ascii_whitespace())
            .collect();
        spaceless.starts_with(format!("{{\"format\":\"{FORMAT}\"").as_bytes())
    }

    /// Reads a model, plain or zstd-compressed, and checks everything in it. Never panics.
    ///
    /// # Errors
    /// Says where (line and column, or the JSON path such as `gaps[3]`) and why.
    pub fn from_slice(file: &[u8]) -> Result<FlowModel, ModelError> {
        if !file.starts_with(&ZSTD_MAGIC) {
            return parse(file);
        }
        let mut text = Vec::new();
        zstd::stream::read::Decoder::with_buffer(file)
            .and_then(|d| d.take(MAX_BYTES as u64 + 1).read_to_end(&mut text))
            .map_err(|e| ModelError::Compression(e.to_string()))?;
        parse(&text)
    }

    /// The model as JSON text, one key per line. Equal models give equal bytes.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\n");
        // An object of strings, numbers and arrays of them, whose keys are strings, always serialises.
        if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(File::from(self)) {
            for key in KEYS {
                if let Some(value) = fields.get(key) {
                    // Writing to a String cannot fail.
                    let _ = writeln!(out, "\"{key}\":{value},");
                }
            }
        }
        out.truncate(out.len() - 2);
        out.push_str("\n}\n");
        out
    }

    /// The model as zstd-compressed JSON.
    ///
    /// # Errors
    /// Those of the compressor (out of memory).
    pub fn to_zstd(&self) -> std::io::Result<Vec<u8>> {
        zstd::bulk::compress(self.to_json().as_bytes(), ZSTD_LEVEL)
    }
}

/// The file's keys in the order in which they are written.
const KEYS: [&str; 20] = [
    "format",
    "version",
    "name",
    "provenance",
    "warnings",
    "profile",
    "interval",
    "start",
    "span",
    "totals",
    "sampled",
    "up",
    "down",
    "gaps",
    "sources",
    "destinations",
    "rates",
    "rates_by_size",
    "intervals",
    "udp",
];

fn parse(text: &[u8]) -> Result<FlowModel, ModelError> {
    if text.len() > MAX_BYTES {
        return Err(ModelError::TooLarge);
    }
    let head: Head = serde_json::from_slice(text)?;
    let shown = |v: Option<serde_json::Value>| {
        v.map_or("missing".to_string(), |v| {
            v.to_string().chars().take(40).collect()
        })
    };
    if head.format != Some(FORMAT.into()) {
        return Err(ModelError::invalid(
            "format",
            format!(
                "{}, not \"{FORMAT}\": this is not a flow-level model",
                shown(head.format)
            ),
        ));
    }
    if head.version != Some(VERSION.into()) {
        return Err(ModelError::invalid(
            "version",
            format!(
                "{}; this program reads version {VERSION}",
                shown(head.version)
            ),
        ));
    }
    let file: File = serde_json::from_slice(text)?;
    file.into_model()
}

impl From<&FlowModel> for File {
    fn from(m: &FlowModel) -> File {
        File {
            format: FORMAT.to_string(),
            version: VERSION,
            name: m.name.clone(),
            provenance: m.provenance.clone(),
            warnings: m.warnings.clone(),
            profile: m.profile.name().to_string(),
            interval: m.interval.as_nanos() / 1_000,
            start: m.start.div_euclid(1_000),
            span: Some(m.span.map(|t| t.div_euclid(1_000))),
            totals: m.totals,
            sampled: m.sampled.clone(),
            up: sizes_out(&m.tcp.up),
            down: sizes_out(&m.tcp.down),
            gaps: out(&m.tcp.gaps),
            sources: m.tcp.sources.ranks.clone(),
            destinations: m.tcp.destinations.ranks.clone(),
            rates: out(&m.tcp.rates),
            rates_by_size: {
                let [up, down] = m.tcp.rates_by_size.each_ref().map(rates_out);
                FileRates { up, down }
            },
            intervals: m
                .tcp
                .intervals
                .iter()
                .map(|i| (i.connections, i.bytes, i.seen, i.sessions))
                .collect(),
            udp: m.udp.iter().map(FileUdp::from).collect(),
        }
    }
}

impl From<&UdpSources> for FileUdp {
    fn from(u: &UdpSources) -> FileUdp {
        FileUdp {
            kind: u.kind.name().to_string(),
            sources: u.sources,
            flows: u.flows,
            packets: u.packets,
            bytes: u.bytes,
            answers: u.answers,
            answer_bytes: u.answer_bytes,
            spacing: out(&u.spacing),
            durations: out(&u.durations),
            pauses: out(&u.pauses),
            datagrams: out(&u.datagrams),
            volumes: out(&u.volumes),
            lifetimes: out(&u.lifetimes),
            active: u.active.clone(),
        }
    }
}

fn out(h: &Histogram) -> FileHistogram {
    let bucket = |(i, b): (u16, Bucket)| {
        let mut out = vec![u64::from(i), b.count, b.sum];
        if b != Bucket::of(b.least, b.count) {
            out.extend([b.least, b.most]);
        }
        out
    };
    h.buckets().map(bucket).collect()
}

fn rates_out(rates: &RatesBySize) -> Vec<(u8, FileHistogram)> {
    rates.iter().map(|(&class, h)| (class, out(h))).collect()
}

fn sizes_out(s: &Sizes) -> FileSizes {
    FileSizes {
        complete: out(&s.complete),
        censored: out(&s.censored),
    }
}

impl File {
    fn into_model(self) -> Result<FlowModel, ModelError> {
        let profile = [Profile::Fixed, Profile::Harpoon]
            .into_iter()
            .find(|p| p.name() == self.profile)
            .ok_or_else(|| ModelError::invalid("profile", "neither \"fixed\" nor \"harpoon\""))?;
        if !(1..=MAX_MICROS).contains(&self.interval) {
            return Err(ModelError::invalid(
                "interval",
                "not between 1 microsecond and thirty years",
            ));
        }
        let interval = Dur::from_micros(self.interval);
        let start = self
            .start
            .checked_mul(1_000)
            .filter(|s| s.unsigned_abs() < i64::MAX as u64 / 2)
            .ok_or_else(|| ModelError::invalid("start", "more than a century from 1970"))?;
        let len = self.intervals.len();
        let length = nanos(interval).checked_mul(len as i64);
        if len > MAX_INTERVALS || length.is_none() {
            return Err(ModelError::invalid(
                "intervals",
                format!("{len} are more than {MAX_INTERVALS}, or longer than three centuries"),
            ));
        }
        let end = start.saturating_add(length.unwrap_or(0));
        let span = match self.span {
            None => [start, end],
            Some(span) => span_in(span)?,
        };
        let sampled = sampled_in(self.sampled)?;
        let tcp = TcpSessions {
            up: sizes_in("up", &self.up)?,
            down: sizes_in("down", &self.down)?,
            gaps: histogram("gaps", &self.gaps)?,
            sources: popularity("sources", self.sources)?,
            destinations: popularity("destinations", self.destinations)?,
            rates: histogram("rates", &self.rates)?,
            rates_by_size: [
                rates_in("rates_by_size.up", &self.rates_by_size.up)?,
                rates_in("rates_by_size.down", &self.rates_by_size.down)?,
            ],
            intervals: self
                .intervals
                .into_iter()
                .map(|(connections, bytes, seen, sessions)| Interval {
                    connections,
                    bytes,
                    seen,
                    sessions,
                })
                .collect(),
        };
        let mut udp: Vec<UdpSources> = Vec::new();
        for (i, u) in self.udp.into_iter().enumerate() {
            let next = u.into_sources(&format!("udp[{i}]"), len)?;
            if udp.last().is_some_and(|last| last.order() >= next.order()) {
                return Err(ModelError::invalid(
                    format!("udp[{i}].kind"),
                    "out of order, or twice",
                ));
            }
            udp.push(next);
        }
        Ok(FlowModel {
            name: self.name,
            provenance: self.provenance,
            warnings: self.warnings,
            profile,
            interval,
            start,
            span,
            totals: self.totals,
            sampled,
            tcp,
            udp,
        })
    }
}

impl FileUdp {
    fn into_sources(self, at: &str, intervals: usize) -> Result<UdpSources, ModelError> {
        let kind = UdpKind::ALL
            .into_iter()
            .find(|k| k.name() == self.kind)
            .ok_or_else(|| ModelError::invalid(format!("{at}.kind"), "no kind of UDP source"))?;
        if self.active.len() != intervals {
            return Err(ModelError::invalid(
                format!("{at}.active"),
                format!(
                    "has {} entries for {intervals} intervals",
                    self.active.len()
                ),
            ));
        }
        if self.answers > self.packets || self.answer_bytes > self.bytes {
            return Err(ModelError::invalid(
                format!("{at}.answers"),
                "more than there are packets or bytes",
            ));
        }
        Ok(UdpSources {
            kind,
            sources: self.sources,
            flows: self.flows,
            packets: self.packets,
            bytes: self.bytes,
            answers: self.answers,
            answer_bytes: self.answer_bytes,
            spacing: histogram(&format!("{at}.spacing"), &self.spacing)?,
            durations: histogram(&format!("{at}.durations"), &self.durations)?,
            pauses: histogram(&format!("{at}.pauses"), &self.pauses)?,
            datagrams: histogram(&format!("{at}.datagrams"), &self.datagrams)?,
            volumes: histogram(&format!("{at}.volumes"), &self.volumes)?,
            lifetimes: histogram(&format!("{at}.lifetimes"), &self.lifetimes)?,
            active: self.active,
        })
    }
}

fn sizes_in(at: &str, s: &FileSizes) -> Result<Sizes, ModelError> {
    Ok(Sizes {
        complete: histogram(&format!("{at}.complete"), &s.complete)?,
        censored: histogram(&format!("{at}.censored"), &s.censored)?,
    })
}

fn rates_in(at: &str, classes: &[(u8, FileHistogram)]) -> Result<RatesBySize, ModelError> {
    let mut rates = RatesBySize::new();
    for (i, (class, h)) in classes.iter().enumerate() {
        let at = format!("{at}[{i}]");
        let ascends = rates.last_key_value().is_none_or(|(last, _)| last < class);
        if !ascends || !(size_class(LARGE)..=size_class(u64::MAX)).contains(class) {
            return Err(ModelError::invalid(
                at,
                "classes of sizes must ascend from 16 and stay below 64",
            ));
        }
        let h = histogram(&format!("{at}[1]"), h)?;
        if !h.is_empty() {
            rates.insert(*class, h);
        }
    }
    Ok(rates)
}

fn span_in(span: [i64; 2]) -> Result<[i64; 2], ModelError> {
    let [first, last] = span.map(|t| t.checked_mul(1_000));
    match (first, last) {
        (Some(first), Some(last)) if first <= last => Ok([first, last]),
        _ => Err(ModelError::invalid(
            "span",
            "its end is before its beginning, or three centuries from 1970",
        )),
    }
}

fn sampled_in(sampled: Vec<Sampled>) -> Result<Vec<Sampled>, ModelError> {
    for (i, s) in sampled.iter().enumerate() {
        let estimates = s.connections.iter().chain(&s.bytes);
        let good = estimates
            .flat_map(|e| [e.value, e.error])
            .all(|x| x.is_finite() && x >= 0.0);
        let ascends = i == 0 || sampled[i - 1].interval < s.interval;
        if !good || !ascends || !s.interval.is_finite() || s.interval <= 1.0 {
            return Err(ModelError::invalid(
                format!("sampled[{i}]"),
                "intervals must ascend from above 1, and no number be negative",
            ));
        }
    }
    Ok(sampled)
}

fn histogram(at: &str, buckets: &FileHistogram) -> Result<Histogram, ModelError> {
    let mut h = Histogram::default();
    let mut next = 0;
    for (i, bucket) in buckets.iter().enumerate() {
        let refuse = |why: &str| Err(ModelError::invalid(format!("{at}[{i}]"), why));
        let (index, count, sum, ends) = match bucket[..] {
            [index, count, sum] => (index, count, sum, None),
            [index, count, sum, least, most] => (index, count, sum, Some((least, most))),
            _ => {
                return refuse(
                    "neither bucket, count and sum nor those and the least and the most",
                );
            }
        };
        let Some(index) = u16::try_from(index)
            .ok()
            .filter(|b| (next..=LAST_BUCKET).contains(b))
        else {
            return refuse("bucket numbers must ascend and stay below 3776");
        };
        next = index + 1;
        let (low, high) = range_of(index);
        // Without limits in the file, all values are equal if the sum allows it.
        let (least, most) = ends.unwrap_or(match sum.checked_div(count) {
            Some(value) if value.checked_mul(count) == Some(sum) => (value, value),
            _ => (low, high),
        });
        let n = u128::from(count);
        // Sums saturate, so a sum of `u64::MAX` may be smaller than its values imply.
        let fits = u128::from(sum) <= n * u128::from(most)
            && (u128::from(sum) >= n * u128::from(least) || sum == u64::MAX);
        if count == 0 || !fits || least > most || least < low || most > high {
            return refuse("the sum is not that of so many values of this bucket");
        }
        let whole = Bucket {
            count,
            sum,
            least,
            most,
        };
        h.add_bucket(index, whole);
    }
    Ok(h)
}

fn popularity(at: &str, ranks: Vec<(u64, u64)>) -> Result<Popularity, ModelError> {
    let descends = ranks.windows(2).all(|w| w[0].0 > w[1].0);
    if !descends || ranks.iter().any(|r| r.0 == 0 || r.1 == 0) {
        return Err(ModelError::invalid(
            at,
            "counts must descend, and neither count nor ranks be zero",
        ));
    }
    Ok(Popularity { ranks })
}
