//! What the paper says of the times of flow records.

use super::{NUMBERS, SWEEP, SWEEPS};
use crate::ledger::Claim;
use crate::words;
use crate::{Finding, Ledger, Verdict};

/// The paper's table 2, end of a flow: mean, median and standard deviation of the error, seconds.
const PAPER: [f64; 3] = [0.454, 0.461, 0.254];
/// How far ours may be from it.
const NEAR: f64 = 0.1;

/// The numbers of a cell by name.
#[derive(Clone, Copy)]
pub struct Row<'a>(&'a [f64]);

impl Row<'_> {
    /// The number, if there is one.
    pub fn get(&self, name: &str) -> Option<f64> {
        let at = NUMBERS.iter().position(|n| *n == name)?;
        self.0.get(at).copied().filter(|x| x.is_finite())
    }

    /// By how much sessions counted from the records are more than those counted from the packets.
    pub fn over(&self) -> Option<f64> {
        Some(self.get("sessions")? / self.get("true_sessions")? - 1.0)
    }
}

/// A place of [`super::cells`], and what it is called.
pub struct Column {
    /// In the ledger.
    pub name: String,
    /// Of the cells.
    pub at: usize,
}

/// Those of the ledger: as metered, as metered against payload, and from the swept cache.
pub fn columns() -> [Column; 3] {
    // Behind the first sweep, which is none, stands the cell against payload.
    let swept = SWEEPS.iter().position(|s| *s == SWEEP).unwrap_or(0) + 1;
    [
        ("as metered".to_owned(), 0),
        ("as metered, against payload".to_owned(), 1),
        (format!("cache swept every {SWEEP}"), swept),
    ]
    .map(|(name, at)| Column { name, at })
}

/// The row of a cell; none where there is none.
pub fn row(numbers: &[Vec<f64>], at: usize) -> Option<Row<'_>> {
    numbers.get(at).map(|n| Row(n))
}

/// The ledger, from the numbers of [`super::cells`].
pub fn ledger(numbers: &[Vec<f64>]) -> Ledger {
    let there = columns().into_iter();
    let there = there
        .map(|c| (c.name, row(numbers, c.at)))
        .collect::<Vec<_>>();
    Ledger::of("Claims about the times of flow records", &claims(), &there)
}

fn claims<'a>() -> [Claim<Option<Row<'a>>>; 4] {
    [
        Claim {
            id: "S4.9a",
            claim: "records begin when their flows do",
            paper: "median 0 ms, mean 19, deviation 8: no numbers have these three, for mean and median are never \
                more than a deviation apart",
            rule: "holds: median error at most a millisecond, as fine as NetFlow v5 is; in part: ten",
            find: |row| {
                let row = (*row)?;
                let median = row.get("begin_50")?;
                let late = median.abs();
                Some(Finding::exact(
                    Verdict::of(late <= 1e-3, late <= 1e-2),
                    millis(median),
                    format!("in the median; mean {}", millis(row.get("begin_mean")?)),
                    median,
                ))
            },
        },
        Claim {
            id: "S4.9b",
            claim: "records end later than their flows",
            paper: "mean 454 ms, median 461, deviation 254, through a Cisco 6509",
            rule: "holds: all three within a tenth of the paper's; in part: late by more than 10 ms in the mean",
            find: late,
        },
        Claim {
            id: "S4.9c",
            claim: "sessions counted from durations are too many",
            paper: "overestimated",
            rule: "holds: by the records' times over 5 % more are active than by the packets'; in part: more",
            find: |row| {
                let row = (*row)?;
                let over = row.over()?;
                Some(Finding::exact(
                    Verdict::of(over > 0.05, over > 0.0),
                    words::tenths(over),
                    format!(
                        "{:.2} active in the mean, by the packets {:.2}, of {:.1} s each",
                        row.get("sessions")?,
                        row.get("true_sessions")?,
                        row.get("lifetime")?
                    ),
                    over,
                ))
            },
        },
        Claim {
            id: "S4.9d",
            claim: "so many sessions send more than there was; with exact times they match",
            paper: "the first algorithm fails with late times, and leads to a good match with exact ones",
            rule: "holds: expected bytes of so many sessions over 5 % more than the original's, and within 5 % with \
               the packets' times; in part: more than with the packets' times",
            find: |row| {
                let row = (*row)?;
                let (said, exact) = (row.get("volume")? - 1.0, row.get("true_volume")? - 1.0);
                Some(Finding::exact(
                    Verdict::of(said > 0.05 && exact.abs() <= 0.05, said > exact),
                    words::tenths(said),
                    format!(
                        "of the bytes; with the packets' times {}",
                        words::tenths(exact)
                    ),
                    said,
                ))
            },
        },
    ]
}

fn late(row: &Option<Row<'_>>) -> Option<Finding> {
    let row = (*row)?;
    let ours = [row.get("end_mean")?, row.get("end_50")?, row.get("end_sd")?];
    let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() <= NEAR;
    Some(Finding::exact(
        Verdict::of(ours.iter().zip(&PAPER).all(near), ours[0] > 0.01),
        millis(ours[0]),
        format!(
            "in the mean; median {}, deviation {}",
            millis(ours[1]),
            millis(ours[2])
        ),
        ours[0],
    ))
}

fn millis(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
