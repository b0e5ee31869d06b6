//! A part of each period of a run: where something alternates, the times at which it is on, or off.

use super::script;

/// The times whose place in their period is in [`from`, `to`). By default all times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    period: f64,
    from: f64,
    to: f64,
}

impl Default for Part {
    fn default() -> Part {
        Part {
            period: f64::INFINITY,
            from: 0.0,
            to: f64::INFINITY,
        }
    }
}

impl Part {
    /// The part of each period, counted from the beginning of the run, seconds.
    pub(super) fn new(period: f64, from: f64, to: f64) -> Result<Part, Box<rhai::EvalAltResult>> {
        let is_part = period > 0.0 && from >= 0.0 && from < to && to <= period;
        match is_part && period.is_finite() {
            true => Ok(Part { period, from, to }),
            false => script::wrong(
                "in_period(period, from, to) wants seconds, with 0 <= from < to <= period",
            ),
        }
    }

    /// Whether a time of the run, in seconds, is in it.
    pub(super) fn holds(&self, at: f64) -> bool {
        let place = match self.period.is_finite() {
            true => at.rem_euclid(self.period),
            false => at,
        };
        place >= self.from && place < self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_again_in_each_period() {
        let off = Part::new(600.0, 300.0, 600.0).expect("a part");
        for (at, inside) in [
            (0.0, false),
            (299.9, false),
            (300.0, true),
            (599.9, true),
            (600.0, false),
            (1000.0, true),
        ] {
            assert_eq!(off.holds(at), inside, "{at}");
        }
        assert!([0.0, 1e9].iter().all(|at| Part::default().holds(*at)));
        for (period, from, to) in [
            (0.0, 0.0, 1.0),
            (9.0, 5.0, 5.0),
            (9.0, 5.0, 10.0),
            (9.0, -1.0, 2.0),
        ] {
            assert!(Part::new(period, from, to).is_err(), "{period} {from} {to}");
        }
    }
}
