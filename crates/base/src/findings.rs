//! Impossible values of keys in files.

use std::ops::RangeInclusive;

use crate::{Bytes, Dur, QueueLimit};

/// An impossible value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The key, dotted: `network.qdisc.target`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// The impossible values found so far, in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Impossible>);

impl Findings {
    /// Adds one. An empty `hint` is none.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>, hint: &str) {
        self.0.push(Impossible {
            key: key.into(),
            message: message.into(),
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        });
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them.
    pub fn into_all(self) -> Vec<Impossible> {
        self.0
    }

    /// Requires a number from 0 to 1.
    pub fn probability(&mut self, key: String, p: f64) {
        if !(0.0..=1.0).contains(&p) {
            self.add(
                key,
                format!("{p} is no probability"),
                "write a number from 0 to 1",
            );
        }
    }

    /// Requires a finite number above 0, or 0 if `zero` is allowed.
    pub fn factor(&mut self, key: String, k: f64, zero: bool) {
        if !k.is_finite() || k < 0.0 || (k == 0.0 && !zero) {
            let hint = if zero {
                "write 0 or more"
            } else {
                "write a number above 0"
            };
            self.add(key, format!("{k} is no factor"), hint);
        }
    }

    /// Requires that `n` is within `range`, which `hint` describes.
    pub fn within<T: PartialOrd>(
        &mut self,
        key: String,
        range: RangeInclusive<T>,
        n: T,
        message: String,
        hint: &str,
    ) {
        if !range.contains(&n) {
            self.add(key, message, hint);
        }
    }

    /// Requires a queue that can hold something.
    pub fn limit(&mut self, key: String, limit: QueueLimit) {
        let empty = match limit {
            QueueLimit::Packets(n) => n == 0,
            QueueLimit::Bytes(b) => b == Bytes(0),
            QueueLimit::Time(d) => d == Dur::ZERO,
            QueueLimit::Bdp(k) => k <= 0.0,
        };
        if empty {
            self.add(
                key,
                "a queue that holds nothing drops every packet that has to wait",
                "write at least 1pkt",
            );
        }
    }
}
