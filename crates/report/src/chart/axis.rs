//! Axes: maps values to positions and chooses ticks.

use crate::human::{Quantity, fixed};

/// Pixels that the label of a horizontal axis needs.
pub const ACROSS: f64 = 68.0;
/// Pixels that the label of a vertical axis needs.
pub const UPRIGHT: f64 = 40.0;

/// Part of the step between ticks by which a share may exceed one and still count as one.
const FULL: f64 = 0.05;

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors.
    Log,
}

/// An axis: a range of a quantity, and a title.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Value at the left or lower end.
    pub lo: f64,
    /// Value at the right or upper end.
    pub hi: f64,
    /// What is measured.
    pub quantity: Quantity,
    /// Title without unit.
    pub title: String,
}

/// A tick mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Its value on the axis.
    pub value: f64,
    /// Its label; `None` for a minor tick.
    pub label: Option<String>,
    /// If labels collide, the one with the smaller rank stays.
    pub rank: u8,
}

impl Axis {
    /// A linear axis that spans `values`, and `0` if `from_zero`. It is never empty or infinite.
    pub fn linear(
        title: &str,
        quantity: Quantity,
        values: impl Iterator<Item = f64>,
        from_zero: bool,
    ) -> Axis {
        let (mut lo, mut hi) = span(values.filter(|v| v.abs() < 1e300)).unwrap_or((0.0, 1.0));
        if from_zero {
            lo = lo.min(0.0);
            hi = hi.max(0.0);
        }
        if hi - lo <= f64::EPSILON * hi.abs().max(lo.abs()) {
            // A single value gets space on both sides.
            let room = if hi == 0.0 { 1.0 } else { hi.abs() * 0.5 };
            hi += room;
            if !(from_zero && lo == 0.0) {
                lo -= room;
            }
        }
        Axis {
            scale: Scale::Linear,
            lo,
            hi,
            quantity,
            title: title.into(),
        }
    }

    /// A logarithmic axis that spans the positive values among `values`.
    pub fn log(title: &str, quantity: Quantity, values: impl Iterator<Item = f64>) -> Axis {
        let positive = values.filter(|&v| v > 1e-300 && v < 1e300);
        let (mut lo, mut hi) = span(positive).unwrap_or((0.1, 10.0));
        if hi / lo < 1.2 {
            lo /= 1.5;
            hi *= 1.5;
        }
        Axis {
            scale: Scale::Log,
            lo,
            hi,
            quantity,
            title: title.into(),
        }
    }

    /// Logarithmic if the sorted `values` are all positive and span more than `factor` from their first percentile to the
    /// largest, linear otherwise. The largest value counts because the longest times often matter most.
    pub fn by_spread(title: &str, quantity: Quantity, sorted: &[f64], factor: f64) -> Axis {
        let positive = sorted.partition_point(|&v| v <= 0.0);
        let (low, high) = match sorted.len() {
            0 => (1.0, 1.0),
            n => (sorted[n / 100], sorted[n - 1]),
        };
        if positive == 0 && high / low > factor {
            Axis::log(title, quantity, sorted.iter().copied())
        } else {
            Axis::linear(title, quantity, sorted.iter().copied(), false)
        }
    }

    /// The same axis with its ends moved out to the next ticks of a vertical axis.
    #[must_use]
    pub fn nice(mut self, pixels: f64) -> Axis {
        match self.scale {
            Scale::Linear => {
                let step = self.step(pixels, UPRIGHT);
                self.lo = (self.lo / step + 1e-9).floor() * step;
                // A share hardly above one is one: a measure that counts whole packets may exceed it by one of them.
                self.hi = match self.quantity == Quantity::Share && self.hi <= 1.0 + FULL * step {
                    true => (self.hi.min(1.0) / step - 1e-9).ceil() * step,
                    false => (self.hi / step - 1e-9).ceil() * step,
                };
            }
            Scale::Log => {
                self.lo = grid_down(self.lo);
                self.hi = grid_up(self.hi);
            }
        }
        self
    }

    /// The same axis with `share` of its length added on both sides.
    #[must_use]
    pub fn padded(mut self, share: f64) -> Axis {
        match self.scale {
            Scale::Linear => {
                let room = (self.hi - self.lo) * share;
                self.lo -= room;
                self.hi += room;
            }
            Scale::Log => {
                let room = libm::pow(self.hi / self.lo, share);
                self.lo /= room;
                self.hi *= room;
            }
        }
        self
    }

    /// The position of `value`: 0 at `lo`, 1 at `hi`. `None` if the axis cannot show it (not finite, or not positive on a
    /// logarithmic axis). Values far outside are moved near the edge.
    pub fn at(&self, value: f64) -> Option<f64> {
        if !value.is_finite() {
            return None;
        }
        let t = match self.scale {
            Scale::Linear => (value - self.lo) / (self.hi - self.lo),
            Scale::Log if value > 0.0 => libm::log(value / self.lo) / libm::log(self.hi / self.lo),
            Scale::Log => return None,
        };
        t.is_finite().then(|| t.clamp(-4.0, 5.0))
    }

    /// Ticks in ascending order for a length of `pixels`, if a label needs `room` pixels ([`ACROSS`] or [`UPRIGHT`]).
    pub fn ticks(&self, pixels: f64, room: f64) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.linear_ticks(self.step(pixels, room)),
            Scale::Log => self.log_ticks(pixels, room),
        }
    }

    /// The step between ticks: 1, 2 or 5 times a power of ten (or a quarter, for shares), so that a label has `room`.
    fn step(&self, pixels: f64, room: f64) -> f64 {
        let raw = (self.hi - self.lo) / (pixels / room).max(1.0);
        let power = libm::pow(10.0, libm::floor(libm::log10(raw.max(1e-300))));
        let quarter = self.quantity == Quantity::Share && power < 0.5;
        let step = match raw / power {
            r if r <= 1.0 => 1.0,
            r if r <= 2.0 => 2.0,
            r if r <= 2.5 && quarter => 2.5,
            r if r <= 5.0 => 5.0,
            _ => 10.0,
        };
        step * power
    }

    /// The unit of the tick labels of a linear axis, in base units, and its name: 0.001 for milliseconds.
    pub fn unit(&self) -> (f64, &'static str) {
        self.quantity.unit(self.lo.abs().max(self.hi.abs()))
    }

    /// The title, with the unit of the tick labels if those are bare numbers.
    pub fn full_title(&self) -> String {
        let (_, unit) = self.unit();
        match (self.scale, self.quantity) {
            (Scale::Log, _) | (_, Quantity::Plain | Quantity::Share | Quantity::Ratio) => {
                self.title.clone()
            }
            _ => format!("{} ({unit})", self.title),
        }
    }

    /// The attributes with which the page's script reads values back: scale, ends, quantity, unit.
    pub(crate) fn for_script(&self) -> String {
        let scale = match self.scale {
            Scale::Linear => "linear",
            Scale::Log => "log",
        };
        let (unit, _) = self.unit();
        format!(
            "{scale} {:e} {:e} {} {unit:e}",
            self.lo,
            self.hi,
            self.quantity.name()
        )
    }

    fn linear_ticks(&self, step: f64) -> Vec<Tick> {
        let first = (self.lo / step - 1e-9).ceil();
        let last = (self.hi / step + 1e-9).floor();
        let (unit, _) = match self.quantity {
            Quantity::Share | Quantity::Ratio => self.quantity.unit(1.0),
            _ => self.unit(),
        };
        // All ticks have as many decimals as the step: 0.5, 1.0, 1.5.
        let decimals = decimals(step / unit);
        (0..=((last - first).clamp(0.0, 60.0) as u32))
            .map(|i| {
                let value = (first + f64::from(i)) * step;
                let number = fixed(value / unit, decimals);
                let label = match self.quantity {
                    Quantity::Share => format!("{number}\u{a0}%"),
                    Quantity::Ratio => format!("{number}×"),
                    _ => number,
                };
                Tick {
                    value,
                    label: Some(label),
                    rank: 0,
                }
            })
            .collect()
    }

    fn log_ticks(&self, pixels: f64, room: f64) -> Vec<Tick> {
        let from = libm::floor(libm::log10(self.lo) - 1e-9) as i32;
        let to = libm::ceil(libm::log10(self.hi) + 1e-9) as i32;
        let decades = libm::log10(self.hi / self.lo).max(1e-9);
        let per_decade = pixels / decades;
        // Decades take precedence, then 2 and 5, then 3 and 7, which lie between on the log scale.
        let every = ((room / per_decade).ceil() as i32).max(1);
        let widest: u8 = match per_decade / room {
            w if w > 9.0 => 2,
            w if w > 2.4 => 1,
            _ => 0,
        };
        let inside = |v: f64| v >= self.lo * (1.0 - 1e-9) && v <= self.hi * (1.0 + 1e-9);
        let mut ticks = Vec::new();
        for exponent in from..=to {
            let decade = libm::pow(10.0, f64::from(exponent));
            for digit in 1..=9_u32 {
                let value = decade * f64::from(digit);
                if !inside(value) || (every > 1 && digit > 1) {
                    continue;
                }
                let rank = match digit {
                    1 => 0,
                    2 | 5 => 1,
                    3 | 7 => 2,
                    _ => 3,
                };
                let labelled = rank <= widest && exponent.rem_euclid(every) == 0;
                ticks.push(Tick {
                    value,
                    label: labelled.then(|| self.quantity.tick(value)),
                    rank,
                });
            }
        }
        if ticks.iter().filter(|t| t.label.is_some()).count() < 2 {
            return self.few_log_ticks(self.step(pixels, room));
        }
        ticks
    }

    /// Linear steps for a logarithmic axis so short that fewer than two round numbers fall on it.
    fn few_log_ticks(&self, step: f64) -> Vec<Tick> {
        let first = (self.lo / step).ceil();
        (0..20)
            .map(|i| (first + f64::from(i)) * step)
            .take_while(|&v| v <= self.hi * (1.0 + 1e-9))
            .filter(|&v| v > 0.0)
            .map(|value| Tick {
                value,
                label: Some(self.quantity.tick(value)),
                rank: 0,
            })
            .collect()
    }
}

/// The number of decimals of a step, which is a round number: as few as tell it from its neighbours.
fn decimals(step: f64) -> usize {
    let whole = |n: &usize| {
        let scaled = step * libm::pow(10.0, *n as f64);
        scaled >= 0.5 && (scaled - scaled.round()).abs() <= 1e-6 * scaled
    };
    (0..=15).find(whole).unwrap_or(15)
}

/// Smallest and largest finite value.
fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|v| v.is_finite())
        .fold(None, |acc, v| match acc {
            None => Some((v, v)),
            Some((lo, hi)) => Some((lo.min(v), hi.max(v))),
        })
}

fn grid_down(v: f64) -> f64 {
    let decade = libm::pow(10.0, libm::floor(libm::log10(v) + 1e-9));
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|d| d * decade)
        .find(|&g| g <= v * (1.0 + 1e-9))
        .unwrap_or(decade)
}

fn grid_up(v: f64) -> f64 {
    let decade = libm::pow(10.0, libm::floor(libm::log10(v) + 1e-9));
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|d| d * decade)
        .find(|&g| g >= v * (1.0 - 1e-9))
        .unwrap_or(decade * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, pixels: f64) -> Vec<String> {
        axis.ticks(pixels, ACROSS)
            .into_iter()
            .filter_map(|t| t.label)
            .map(|l| l.replace('\u{a0}', " "))
            .collect()
    }

    #[test]
    fn a_logarithmic_axis_of_durations_reads_in_human_units() {
        let axis = Axis::log("t", Quantity::Duration, [0.001, 10.0].into_iter());
        assert_eq!(
            labels(&axis, 500.0),
            ["1 ms", "10 ms", "100 ms", "1 s", "10 s"]
        );
        // Minor ticks at 2..9 of four decades.
        assert_eq!(axis.ticks(500.0, ACROSS).len(), 5 + 4 * 8);
        let short = Axis::log("t", Quantity::Duration, [0.3, 3.0].into_iter());
        assert_eq!(labels(&short, 400.0), ["500 ms", "1 s", "2 s"]);
        let shorter = Axis::log("t", Quantity::Ratio, [1.1, 1.8].into_iter());
        assert_eq!(labels(&shorter, 300.0), ["1.2×", "1.4×", "1.6×", "1.8×"]);
    }

    #[test]
    fn a_linear_axis_puts_its_unit_in_the_title() {
        let axis = Axis::linear("Time", Quantity::Duration, [0.0, 0.6].into_iter(), true);
        assert_eq!(axis.full_title(), "Time (ms)");
        assert_eq!(
            labels(&axis, 420.0),
            ["0", "100", "200", "300", "400", "500", "600"]
        );
        let share = Axis::linear("", Quantity::Share, [0.0, 1.0].into_iter(), true);
        assert_eq!(
            labels(&share, 300.0),
            ["0 %", "25 %", "50 %", "75 %", "100 %"]
        );
    }

    #[test]
    fn no_values_one_value_and_hostile_values_give_a_usable_axis() {
        let hostile = [
            f64::NAN,
            f64::INFINITY,
            -1.0,
            0.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            1e-320,
        ];
        for values in [
            &[][..],
            &[7.0][..],
            &[0.0][..],
            &hostile[..],
            &[-3.0, -3.0][..],
        ] {
            for axis in [
                Axis::linear("x", Quantity::Duration, values.iter().copied(), true),
                Axis::linear("x", Quantity::Plain, values.iter().copied(), false),
                Axis::log("x", Quantity::Bytes, values.iter().copied()),
            ] {
                for shown in [axis.clone(), axis.nice(400.0).padded(0.02)] {
                    assert!(shown.lo < shown.hi, "{shown:?}");
                    assert!(shown.at(shown.lo).is_some_and(|t| t.abs() < 1e-9));
                    assert!(shown.at(shown.hi).is_some_and(|t| (t - 1.0).abs() < 1e-9));
                    let ticks = shown.ticks(400.0, UPRIGHT);
                    assert!(!ticks.is_empty() && ticks.len() < 200, "{shown:?}");
                    assert!(shown.at(f64::NAN).is_none());
                }
            }
        }
    }

    /// Steps far smaller than the values still have labels that differ.
    #[test]
    fn ticks_of_a_small_spread_differ() {
        for (quantity, lo, hi) in [
            (Quantity::Plain, 1.0, 1.000_000_05),
            (Quantity::Duration, 5.0, 5.000_000_2),
            (Quantity::Share, 0.5, 0.500_000_001),
        ] {
            let axis = Axis::linear("x", quantity, [lo, hi].into_iter(), false);
            let all = labels(&axis, 400.0);
            let different: std::collections::BTreeSet<&String> = all.iter().collect();
            assert!(all.len() > 1 && different.len() == all.len(), "{all:?}");
        }
    }

    /// The axis of a share ends at 100 % if it is not clearly exceeded, whatever the step.
    #[test]
    fn the_axis_of_a_share_ends_at_one() {
        let end = |quantity, hi: f64| Axis::linear("x", quantity, [0.0, hi].into_iter(), true);
        for hi in [0.97, 1.0, 1.000_005] {
            assert_eq!(end(Quantity::Share, hi).nice(300.0).hi, 1.0, "{hi}");
        }
        assert!(end(Quantity::Share, 1.06).nice(300.0).hi > 1.06);
        assert!(end(Quantity::Plain, 1.000_005).nice(300.0).hi > 1.000_005);
        // Where the whole axis is near one, so small a difference shows.
        let near = Axis::linear("x", Quantity::Share, [0.99999, 1.00001].into_iter(), false);
        assert!(near.nice(300.0).hi > 1.000_009);
    }

    #[test]
    fn the_spread_decides_between_linear_and_logarithmic() {
        let narrow: Vec<f64> = (100..200).map(f64::from).collect();
        let wide: Vec<f64> = (0..200).map(|i| libm::exp(f64::from(i) / 20.0)).collect();
        let of = |v: &[f64]| Axis::by_spread("x", Quantity::Duration, v, 10.0).scale;
        assert_eq!(of(&narrow), Scale::Linear);
        assert_eq!(of(&wide), Scale::Log);
        assert_eq!(of(&[0.0, 1.0, 1e6]), Scale::Linear);
        assert_eq!(of(&[]), Scale::Linear);
    }
}
