//! Random loss on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::Stream;

/// Random loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Loss {
    /// No random loss.
    #[default]
    None,
    /// Each packet is lost independently.
    Independent {
        /// Probability that a packet is lost.
        p: f64,
    },
    /// Two states with a loss probability each; the state may change at every packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability per packet of going from good to bad.
        #[serde(rename = "p_bad")]
        to_bad: f64,
        /// Probability per packet of going from bad to good.
        #[serde(rename = "p_good")]
        to_good: f64,
        /// Probability that a packet is lost in the bad state. Default 1.
        #[serde(default = "one")]
        loss_bad: f64,
        /// Probability that a packet is lost in the good state. Default 0.
        #[serde(default)]
        loss_good: f64,
    },
}

fn one() -> f64 {
    1.0
}

impl Loss {
    /// Long-run fraction of packets lost.
    pub fn mean(&self) -> f64 {
        match *self {
            Loss::None => 0.0,
            Loss::Independent { p } => p,
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => {
                if to_bad + to_good == 0.0 {
                    return loss_good;
                }
                let bad = to_bad / (to_bad + to_good);
                loss_bad * bad + loss_good * (1.0 - bad)
            }
        }
    }
}

/// A loss process with its random stream and state.
#[derive(Clone, Debug)]
pub struct LossProcess {
    loss: Loss,
    bad: bool,
    rng: Stream,
}

impl LossProcess {
    /// A process that starts in the good state and draws from `rng`.
    pub fn new(loss: Loss, rng: Stream) -> LossProcess {
        LossProcess {
            loss,
            bad: false,
            rng,
        }
    }

    /// Switches to another process in its good state. The random stream continues.
    pub fn becomes(&mut self, loss: Loss) {
        self.loss = loss;
        self.bad = false;
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn loses(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Independent { p } => self.rng.chance(p),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_good,
                loss_bad,
            } => {
                let turn = self.rng.chance(if self.bad { to_good } else { to_bad });
                self.bad ^= turn;
                self.rng.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(loss: Loss, n: usize) -> Vec<bool> {
        let mut p = LossProcess::new(loss, Stream::new(3, "loss"));
        (0..n).map(|_| p.loses()).collect()
    }

    #[test]
    fn independent_loss_has_its_rate() {
        let lost = run(Loss::Independent { p: 0.02 }, 200_000)
            .iter()
            .filter(|&&l| l)
            .count();
        // Standard deviation sqrt(n p q) = 63.
        assert!((lost as f64 - 4000.0).abs() < 4.0 * 63.0, "{lost}");
    }

    #[test]
    fn gilbert_elliott_has_its_rate_and_its_burst_length() {
        let loss = Loss::GilbertElliott {
            to_bad: 0.01,
            to_good: 0.25,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let lost = run(loss, 400_000);
        let rate = lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64;
        assert!(
            (rate / loss.mean() - 1.0).abs() < 0.05,
            "{rate} against {}",
            loss.mean()
        );
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count();
        let mean_burst = rate * lost.len() as f64 / bursts as f64;
        // The number of packets per visit to the bad state is geometric with mean 1/to_good = 4.
        assert!((mean_burst - 4.0).abs() < 0.2, "{mean_burst}");
    }
}
