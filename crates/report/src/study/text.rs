//! Numbers and titles of a study as readers see them.

use swell_study::{Estimate, Unit};

use crate::human::Quantity;
use crate::parts::{Cell, interval};

/// `title` with a capital first letter, as the axes of other figures have; a symbol such as `p95` or `x` stays.
pub(super) fn capital(title: &str) -> String {
    let mut letters = title.chars();
    let word = title.split(|c: char| c.is_whitespace() || ",:;(".contains(c));
    let is_word =
        |w: &str| w.chars().count() > 1 && w.chars().all(|c| c.is_lowercase() || c == '-');
    match (letters.next(), word.into_iter().next()) {
        (Some(first), Some(word)) if is_word(word) => first.to_uppercase().chain(letters).collect(),
        _ => title.to_owned(),
    }
}

pub(super) fn quantity(unit: Unit) -> Quantity {
    match unit {
        Unit::Plain => Quantity::Plain,
        Unit::Share => Quantity::Share,
        Unit::Seconds => Quantity::Duration,
        Unit::Bytes => Quantity::Bytes,
        Unit::BitsPerSecond => Quantity::Rate,
    }
}

pub(super) fn number(e: &Estimate, quantity: Quantity) -> Cell {
    let cell = Cell::text(quantity.show(e.value, 4));
    match e.interval {
        Some([low, high]) => cell.small(interval(quantity, e.value, low, high)),
        None => cell,
    }
}
