//! Instants, durations, rates and sizes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant: nanoseconds since time zero of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A duration in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dur(u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Time {
    /// Time zero.
    pub const ZERO: Time = Time(0);
    /// Later than every event.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `ns` nanoseconds after time zero.
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }
    /// The instant `s` seconds after time zero. Negative numbers and NaN give time zero.
    pub fn from_secs_f64(s: f64) -> Time {
        Time(Dur::from_secs_f64(s).0)
    }
    /// Nanoseconds since time zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since time zero.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The duration from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }
}

impl Dur {
    /// Zero duration.
    pub const ZERO: Dur = Dur(0);
    /// Longer than every run.
    pub const MAX: Dur = Dur(u64::MAX);

    /// A duration of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Dur {
        Dur(ns)
    }
    /// A duration of `us` microseconds.
    pub const fn from_micros(us: u64) -> Dur {
        Dur(us * 1_000)
    }
    /// A duration of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Dur {
        Dur(ms * 1_000_000)
    }
    /// A duration of `s` seconds.
    pub const fn from_secs(s: u64) -> Dur {
        Dur(s * 1_000_000_000)
    }
    /// A duration of `s` seconds, to the nearest nanosecond. Negative numbers and NaN give zero.
    pub fn from_secs_f64(s: f64) -> Dur {
        // A float-to-integer cast saturates and maps NaN to zero.
        Dur((s * 1e9 + 0.5) as u64)
    }
    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Dur) -> Dur {
        Dur(self.0.saturating_sub(other.0))
    }
    /// This duration times `k` (at least zero), to the nearest nanosecond.
    pub fn scale(self, k: f64) -> Dur {
        Dur((self.0 as f64 * k + 0.5) as u64)
    }
}

impl Rate {
    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }
    /// `bps` bits per second, to the nearest integer. Negative numbers and NaN give zero.
    pub fn from_bps_f64(bps: f64) -> Rate {
        Rate((bps + 0.5) as u64)
    }
    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// Megabits per second (10^6).
    pub fn as_mbit(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Transmission time of `size` at this rate, rounded down to a nanosecond; `Dur::MAX` at rate zero. Use a link's
    /// serializer if remainders must not be lost.
    pub fn transmit(self, size: Bytes) -> Dur {
        if self.0 == 0 {
            return Dur::MAX;
        }
        let ns = u128::from(size.0) * 8_000_000_000 / u128::from(self.0);
        Dur(u64::try_from(ns).unwrap_or(u64::MAX))
    }
    /// Bytes carried in `span`, rounded down.
    pub fn carried_in(self, span: Dur) -> Bytes {
        let b = u128::from(self.0) * u128::from(span.0) / 8_000_000_000;
        Bytes(u64::try_from(b).unwrap_or(u64::MAX))
    }
    /// This rate times `k` (at least zero).
    pub fn scale(self, k: f64) -> Rate {
        Rate::from_bps_f64(self.0 as f64 * k)
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    fn add(self, d: Dur) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Dur> for Time {
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}
impl Sub<Dur> for Time {
    type Output = Time;
    fn sub(self, d: Dur) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
}
impl Add for Dur {
    type Output = Dur;
    fn add(self, d: Dur) -> Dur {
        Dur(self.0.saturating_add(d.0))
    }
}
impl AddAssign for Dur {
    fn add_assign(&mut self, d: Dur) {
        *self = *self + d;
    }
}
impl Sub for Dur {
    type Output = Dur;
    /// Saturates at zero, because a duration is never negative.
    fn sub(self, d: Dur) -> Dur {
        self.saturating_sub(d)
    }
}
impl SubAssign for Dur {
    fn sub_assign(&mut self, d: Dur) {
        *self = *self - d;
    }
}
impl Mul<u64> for Dur {
    type Output = Dur;
    fn mul(self, k: u64) -> Dur {
        Dur(self.0.saturating_mul(k))
    }
}
impl Div<u64> for Dur {
    type Output = Dur;
    fn div(self, k: u64) -> Dur {
        Dur(self.0 / k)
    }
}
impl Sum for Dur {
    fn sum<I: Iterator<Item = Dur>>(iter: I) -> Dur {
        iter.fold(Dur::ZERO, Add::add)
    }
}
impl Add for Bytes {
    type Output = Bytes;
    fn add(self, b: Bytes) -> Bytes {
        Bytes(self.0 + b.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, b: Bytes) {
        self.0 += b.0;
    }
}
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes(0), Add::add)
    }
}

/// Why a quantity could not be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{0}` does not start with a number; write for example `{1}`")]
    NoNumber(String, &'static str),
    /// The number has no unit.
    #[error("`{text}` has no unit; write one of {known} after the number")]
    NoUnit {
        /// The whole text.
        text: String,
        /// The known units.
        known: &'static str,
    },
    /// The number has an unknown unit.
    #[error("`{text}`: unknown unit `{unit}`; use one of {known}")]
    BadUnit {
        /// The whole text.
        text: String,
        /// The part after the number.
        unit: String,
        /// The known units.
        known: &'static str,
    },
    /// The value is negative or too large.
    #[error("`{0}` is out of range")]
    OutOfRange(String),
}

fn split<'a>(text: &'a str, example: &'static str) -> Result<(f64, &'a str), UnitError> {
    let t = text.trim();
    let end = t
        .char_indices()
        .find(|&(i, c)| {
            let exponent = (c == 'e' || c == 'E')
                && t[i + 1..].starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+');
            !(c.is_ascii_digit() || c == '.' || c == '_' || c == '-' || c == '+' || exponent)
        })
        .map_or(t.len(), |(i, _)| i);
    let number: f64 = t[..end]
        .replace('_', "")
        .parse()
        .map_err(|_| UnitError::NoNumber(text.into(), example))?;
    if !(0.0..1e19).contains(&number) {
        return Err(UnitError::OutOfRange(text.into()));
    }
    Ok((number, t[end..].trim()))
}

/// The error for a number with `unit`, which is none of the known ones.
fn bad_unit(text: &str, unit: &str, known: &'static str) -> UnitError {
    match unit {
        "" => UnitError::NoUnit {
            text: text.into(),
            known,
        },
        unit => UnitError::BadUnit {
            text: text.into(),
            unit: unit.into(),
            known,
        },
    }
}

fn to_u64(text: &str, value: f64) -> Result<u64, UnitError> {
    if value.is_finite() && (0.0..1.8e19).contains(&value) {
        Ok((value + 0.5) as u64)
    } else {
        Err(UnitError::OutOfRange(text.into()))
    }
}

impl FromStr for Dur {
    type Err = UnitError;
    /// Reads `25ms`, `1.5 s`, `10us`, `200ns`, `5min`, `2h`.
    fn from_str(s: &str) -> Result<Dur, UnitError> {
        let (n, unit) = split(s, "25ms")?;
        let scale = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(bad_unit(s, unit, "ns, us, ms, s, min, h")),
        };
        Ok(Dur(to_u64(s, n * scale)?))
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    /// Reads `10Mbit`, `1.5 Gbit`, `64kbit`, `9600bit` (bits per second, decimal prefixes) and
    /// `1MB/s`, `10kB/s` (bytes per second).
    fn from_str(s: &str) -> Result<Rate, UnitError> {
        let (n, unit) = split(s, "10Mbit")?;
        let scale = match unit {
            "bit" | "bit/s" | "bps" => 1.0,
            "kbit" | "kbit/s" | "kbps" => 1e3,
            "Mbit" | "Mbit/s" | "Mbps" => 1e6,
            "Gbit" | "Gbit/s" | "Gbps" => 1e9,
            "B/s" => 8.0,
            "kB/s" => 8e3,
            "MB/s" => 8e6,
            "GB/s" => 8e9,
            _ => {
                return Err(bad_unit(
                    s,
                    unit,
                    "bit, kbit, Mbit, Gbit (per second), B/s, kB/s, MB/s, GB/s",
                ));
            }
        };
        Ok(Rate(to_u64(s, n * scale)?))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    /// Reads `1500B`, `4kB`, `1MB` (powers of ten) and `64KiB`, `1MiB` (powers of two).
    fn from_str(s: &str) -> Result<Bytes, UnitError> {
        let (n, unit) = split(s, "1MB")?;
        let scale = match unit {
            "B" => 1.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            _ => return Err(bad_unit(s, unit, "B, kB, MB, GB, KiB, MiB, GiB")),
        };
        Ok(Bytes(to_u64(s, n * scale)?))
    }
}

/// Limit of a queue: `100pkt`, `64KiB`, `50ms` (at the link's rate) or `1.5BDP` (rate times round-trip propagation
/// delay; resolved by the caller, who knows both).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueLimit {
    /// Packets waiting.
    Packets(u64),
    /// Bytes waiting.
    Bytes(Bytes),
    /// Waiting time at the link's rate.
    Time(Dur),
    /// Multiples of the bandwidth-delay product, in bytes.
    Bdp(f64),
}

impl FromStr for QueueLimit {
    type Err = UnitError;
    fn from_str(s: &str) -> Result<QueueLimit, UnitError> {
        let (n, unit) = split(s, "100pkt")?;
        match unit {
            "pkt" | "p" | "packets" => Ok(QueueLimit::Packets(to_u64(s, n)?)),
            "BDP" | "bdp" => Ok(QueueLimit::Bdp(n)),
            _ => {
                if let Ok(b) = s.parse::<Bytes>() {
                    Ok(QueueLimit::Bytes(b))
                } else if let Ok(d) = s.parse::<Dur>() {
                    Ok(QueueLimit::Time(d))
                } else {
                    Err(bad_unit(s, unit, "pkt, B, kB, KiB, MB, us, ms, s, BDP"))
                }
            }
        }
    }
}

/// Writes `value` in the largest unit that represents it exactly; the inverse of parsing.
fn exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let &(scale, name) = units
        .iter()
        .find(|&&(scale, _)| value >= scale && value.is_multiple_of(scale.div_ceil(1000).max(1)))
        .unwrap_or(&units[units.len() - 1]);
    if value.is_multiple_of(scale) {
        write!(f, "{}{name}", value / scale)
    } else {
        // The search above leaves at most three decimals.
        let thousandths = value / (scale / 1000);
        let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
        write!(f, "{}{name}", text.trim_end_matches('0'))
    }
}

impl fmt::Display for Dur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exact(
            f,
            self.0,
            &[
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1_000, "us"),
                (1, "ns"),
            ],
        )
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Dur(self.0), f)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exact(
            f,
            self.0,
            &[
                (1_000_000_000, "Gbit"),
                (1_000_000, "Mbit"),
                (1_000, "kbit"),
                (1, "bit"),
            ],
        )
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exact(
            f,
            self.0,
            &[
                (1_000_000_000, "GB"),
                (1_000_000, "MB"),
                (1_000, "kB"),
                (1, "B"),
            ],
        )
    }
}
impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(n) => write!(f, "{n}pkt"),
            QueueLimit::Bytes(b) => write!(f, "{b}"),
            QueueLimit::Time(d) => write!(f, "{d}"),
            QueueLimit::Bdp(k) => write!(f, "{k}BDP"),
        }
    }
}

/// In files a quantity is a string with its unit. A bare number is an error, and the message says so.
macro_rules! as_string {
    ($($t:ident, $example:literal, $pattern:literal;)*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<$t, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $t;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, concat!("a quantity with its unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<$t, E> {
                        s.parse().map_err(E::custom)
                    }
                }
                d.deserialize_str(Visitor)
            }
        }
        impl schemars::JsonSchema for $t {
            fn schema_name() -> std::borrow::Cow<'static, str> { stringify!($t).into() }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string", "pattern": $pattern, "examples": [$example]
                })
            }
        }
    )*};
}
as_string! {
    Dur, "25ms", "^\\s*[0-9][0-9._eE+-]*\\s*(ns|us|µs|ms|s|min|h)\\s*$";
    Rate, "10Mbit", "^\\s*[0-9][0-9._eE+-]*\\s*([kMG]?(bit|bit/s|bps|B/s))\\s*$";
    Bytes, "1MB", "^\\s*[0-9][0-9._eE+-]*\\s*([kKMG]?B|[KMG]iB)\\s*$";
    QueueLimit, "100pkt", "^\\s*[0-9][0-9._eE+-]*\\s*(pkt|p|packets|BDP|bdp|[kKMG]?B|[KMG]iB|ns|us|ms|s)\\s*$";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_back_what_they_print() {
        for ns in [
            0,
            1,
            999,
            1_000,
            1_500,
            25_000_000,
            1_234_567,
            90_000_000_000,
            u64::MAX / 2,
        ] {
            let d = Dur(ns);
            assert_eq!(
                d.to_string().parse::<Dur>().map(|x| x.0 as f64),
                Ok(ns as f64),
                "{d}"
            );
        }
        for bps in [
            1,
            9_600,
            64_000,
            1_500_000,
            10_000_000,
            1_234_567,
            2_500_000_000,
        ] {
            assert_eq!(
                Rate(bps).to_string().parse(),
                Ok(Rate(bps)),
                "{}",
                Rate(bps)
            );
        }
        for b in [0, 1, 1500, 4_000, 1_000_000, 123_456_789] {
            assert_eq!(Bytes(b).to_string().parse(), Ok(Bytes(b)), "{}", Bytes(b));
        }
        for q in ["100pkt", "64kB", "50ms", "1.5BDP"] {
            assert_eq!(q.parse::<QueueLimit>().unwrap().to_string(), q);
        }
    }

    #[test]
    fn a_number_without_unit_is_refused_with_the_units_named() {
        let e = "25".parse::<Dur>().unwrap_err().to_string();
        assert_eq!(
            e,
            "`25` has no unit; write one of ns, us, ms, s, min, h after the number"
        );
        for text in ["10", "100 "] {
            let of_rate = text.parse::<Rate>().unwrap_err().to_string();
            let of_limit = text.parse::<QueueLimit>().unwrap_err().to_string();
            assert!(of_rate.contains("has no unit") && of_limit.contains("has no unit"));
        }
        let bits = "10MB".parse::<Rate>().unwrap_err().to_string();
        assert!(bits.contains("MB/s"), "{bits}");
        assert!("-5ms".parse::<Dur>().is_err());
        assert!("ms".parse::<Dur>().is_err());
        assert!("nanms".parse::<Dur>().is_err());
        assert!("1e30s".parse::<Dur>().is_err());
    }

    #[test]
    fn bits_and_bytes_are_told_apart() {
        assert_eq!("1MB/s".parse::<Rate>(), Ok(Rate(8_000_000)));
        assert_eq!("10Mbps".parse::<Rate>(), Ok(Rate(10_000_000)));
        assert_eq!("1KiB".parse::<Bytes>(), Ok(Bytes(1024)));
        assert_eq!("1kB".parse::<Bytes>(), Ok(Bytes(1000)));
    }

    #[test]
    fn transmission_of_1500_bytes_at_10_mbit_takes_1200_microseconds() {
        assert_eq!(
            Rate(10_000_000).transmit(Bytes(1500)),
            Dur::from_micros(1200)
        );
        assert_eq!(
            Rate(10_000_000).carried_in(Dur::from_micros(1200)),
            Bytes(1500)
        );
        assert_eq!(Rate(0).transmit(Bytes(1)), Dur::MAX);
    }
}
