//! A mean over seeds and its interval.
//!
//! This type differs from [`swell_stats::Estimate`], a statistic of pooled samples with a bootstrap interval.
//! A study has one number per run. For ns-2 it often has only a mean and a standard deviation, which cannot be
//! bootstrapped.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A mean and its 95 % interval by Student's t; no interval from a single value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Mean")]
pub struct Estimate {
    /// The mean.
    #[serde(deserialize_with = "number")]
    pub value: f64,
    /// Lower and upper end.
    #[serde(deserialize_with = "ends_of")]
    pub interval: Option<[f64; 2]>,
    /// Standard deviation of the values (divisor n - 1).
    pub sd: Option<f64>,
    /// How many values.
    pub n: usize,
}

impl Estimate {
    /// The estimate from one value per seed; `None` without values. Non-finite values are ignored.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let value = swell_stats::mean(&values)?;
        let sd = swell_stats::sd(&values);
        Some(Estimate::known(value, sd.unwrap_or(0.0), values.len()))
    }

    /// The estimate from a mean and a standard deviation of `n` values, as reported by another simulator.
    pub fn known(value: f64, sd: f64, n: usize) -> Estimate {
        let interval = (n > 1).then(|| ends(value, sd, n));
        Estimate {
            value,
            interval,
            sd: (n > 1).then_some(sd),
            n,
        }
    }

    /// An exact number, without interval.
    pub fn exact(value: f64) -> Estimate {
        Estimate::known(value, 0.0, 1)
    }

    /// The lower end of the interval, or the value.
    pub fn low(&self) -> f64 {
        self.interval.map_or(self.value, |i| i[0])
    }

    /// The upper end of the interval, or the value.
    pub fn high(&self) -> f64 {
        self.interval.map_or(self.value, |i| i[1])
    }

    /// The ratio of two means. Its interval assumes that they are independent.
    pub fn over(&self, divisor: &Estimate) -> Estimate {
        let value = self.value / divisor.value;
        let half = |e: &Estimate| e.interval.map(|i| (i[1] - i[0]) / 2.0);
        let interval = half(self).zip(half(divisor)).map(|(a, b)| {
            // Not relative errors: the dividend may be zero.
            let own = a.hypot(value * b) / divisor.value.abs();
            [value - own, value + own]
        });
        Estimate {
            value,
            interval,
            sd: None,
            n: self.n.min(divisor.n),
        }
    }

    /// The sum of two means. Its interval assumes that they are independent.
    #[must_use]
    pub fn plus(&self, other: &Estimate) -> Estimate {
        let value = self.value + other.value;
        let half = |e: &Estimate| e.interval.map_or(0.0, |i| (i[1] - i[0]) / 2.0);
        let known = self.interval.is_some() || other.interval.is_some();
        let half = half(self).hypot(half(other));
        Estimate {
            value,
            interval: known.then_some([value - half, value + half]),
            sd: None,
            n: self.n.min(other.n),
        }
    }

    /// Applies the monotonic function `f` to the value and the interval.
    #[must_use]
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Estimate {
        let interval = self.interval.map(|i| {
            let [a, b] = i.map(&f);
            [a.min(b), a.max(b)]
        });
        Estimate {
            value: f(self.value),
            interval,
            sd: None,
            n: self.n,
        }
    }

    /// Variance of the mean; zero if it is unknown.
    pub(crate) fn variance_of_mean(&self) -> f64 {
        self.sd.map_or(0.0, |sd| sd * sd / self.n as f64)
    }
}

/// A number of JSON, which has only null for one that is not finite.
fn number<'d, D: Deserializer<'d>>(from: D) -> Result<f64, D::Error> {
    Option::deserialize(from).map(|known| known.unwrap_or(f64::NAN))
}

fn ends_of<'d, D: Deserializer<'d>>(from: D) -> Result<Option<[f64; 2]>, D::Error> {
    let ends: Option<[Option<f64>; 2]> = Option::deserialize(from)?;
    Ok(ends.map(|ends| ends.map(|end| end.unwrap_or(f64::NAN))))
}

fn ends(value: f64, sd: f64, n: usize) -> [f64; 2] {
    let half = swell_stats::t_quantile(0.975, (n - 1) as f64) * sd / (n as f64).sqrt();
    [value - half, value + half]
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    #[test]
    fn json_gives_back_what_it_can_hold() {
        let read = |e: &Estimate| -> Estimate {
            serde_json::from_str(&serde_json::to_string(e).unwrap()).unwrap()
        };
        let known = Estimate::known(2.0, 1.0, 4);
        assert_eq!(read(&known), known);
        assert_eq!(read(&Estimate::exact(1.0)), Estimate::exact(1.0));
        let endless = Estimate::known(f64::NAN, f64::INFINITY, 2);
        assert!(read(&endless).value.is_nan() && read(&endless).high().is_nan());
    }

    #[test]
    fn by_hand() {
        // Mean 3, s = 1.5811, t(0.975; 4) = 2.7764, half = 2.7764 x 1.5811 / sqrt(5) = 1.9632.
        let e = Estimate::of([1.0, 2.0, f64::NAN, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((e.value, e.n), (3.0, 5));
        assert!((e.high() - 4.963_2).abs() < 1e-4 && (e.low() - 1.036_8).abs() < 1e-4);
        assert!((e.variance_of_mean() - 0.5).abs() < 1e-12);
        let half = e.over(&Estimate::known(6.0, 0.0, 3));
        assert!((half.value - 0.5).abs() < 1e-12 && (half.high() - 0.827_2).abs() < 1e-4);
        let none = Estimate::known(0.0, 0.0, 5).over(&Estimate::known(4.0, 1.0, 5));
        assert_eq!((none.value, none.low(), none.high()), (0.0, 0.0, 0.0));
        let falling = e.map(|x| -x);
        assert_eq!((falling.low(), falling.high()), (-e.high(), -e.low()));
        let one = Estimate::of([7.0]).unwrap();
        assert_eq!((one.low(), one.high(), one.interval), (7.0, 7.0, None));
        assert_eq!(Estimate::of([]), None);
    }
}
