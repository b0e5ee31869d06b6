//! Numbers as ledgers write them.

/// A change, with its sign: whole percents from ten on, else tenths.
pub(crate) fn percent(value: f64) -> String {
    let digits = if value.abs() < 0.1 { 1 } else { 0 };
    format!("{:+.*} %", digits, value * 100.0)
}

/// A change, with its sign, in tenths of a percent.
pub(crate) fn tenths(value: f64) -> String {
    format!("{:+.1} %", value * 100.0)
}

/// A share, in percent: tenths from ten on, else hundredths.
pub(crate) fn share(value: f64) -> String {
    let digits = if value.abs() < 0.1 { 2 } else { 1 };
    format!("{:.*} %", digits, value * 100.0)
}

/// A large count, in thousands.
pub(crate) fn thousands(count: f64) -> String {
    format!("{:.1}k", count / 1e3)
}
