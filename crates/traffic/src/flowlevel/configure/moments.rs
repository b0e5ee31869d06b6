//! Moments of the gaps and rates of datagrams.

/// Minimum number of datagrams per flow for a stream.
pub(super) const STREAM: u64 = 10;
/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;
/// Minimum duration of a stream's record, nanoseconds; shorter ones say little about a rate.
const LONG: i64 = 1_000_000_000;

/// Moments of positive numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    pub(super) n: f64,
    sum: f64,
    squares: f64,
    logs: f64,
}

impl Moments {
    pub(super) fn any(&self) -> bool {
        self.n > 0.0
    }

    /// Adds those of others.
    pub(super) fn join(&mut self, other: &Moments) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
        self.logs += other.logs;
    }

    /// The rate of a record, if it says enough about that of a stream.
    pub(super) fn of_record(packets: u64, payload: u64, length: i64) -> Moments {
        let mut rates = Moments::default();
        if packets >= STREAM && length >= LONG {
            rates.add(payload as f64 / length as f64);
        }
        rates
    }

    pub(super) fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
        self.logs += libm::log(x.max(1e-300));
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.n.max(1.0)
    }

    /// Coefficient of variation: standard deviation over mean.
    pub(super) fn cov(&self) -> f64 {
        let mean = self.mean();
        let variance = (self.squares / self.n.max(1.0) - mean * mean).max(0.0);
        if mean > 0.0 {
            variance.sqrt() / mean
        } else {
            0.0
        }
    }

    pub(super) fn exponential(&self) -> bool {
        // For n exponential values, the coefficient of variation has a standard error of 1/sqrt(n), the
        // difference of logarithms one of sqrt((pi^2/6 - 1)/n) = 0.803/sqrt(n) (delta method).
        let error = 3.0 / self.n.sqrt();
        (self.cov() - 1.0).abs() <= error.min(0.3)
            && (libm::log(self.mean()) - self.logs / self.n - EULER).abs()
                <= (0.803 * error).min(0.3)
    }
}
