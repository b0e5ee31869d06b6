//! Number formats of ledgers.

/// A relative change in percent with its sign: no decimals from 10 % on, one from 1 % on, and so on up to three.
/// Values that are not finite have no percent: "infinite", "unknown".
pub(crate) fn percent(value: f64) -> String {
    if value.is_nan() {
        return "unknown".into();
    }
    if value.is_infinite() {
        return if value > 0.0 {
            "+infinite".into()
        } else {
            "-infinite".into()
        };
    }
    let digits = [0.1, 0.01, 0.001]
        .iter()
        .filter(|&&from| value.abs() < from)
        .count();
    let text = format!("{:+.*} %", digits, value * 100.0);
    // No sign if all digits round to zero.
    if text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        text
    } else {
        "0 %".into()
    }
}

/// A share in percent: one decimal from 10 % on, otherwise two.
pub(crate) fn share(value: f64) -> String {
    let digits = if value.abs() < 0.1 { 2 } else { 1 };
    format!("{:.*} %", digits, value * 100.0)
}

/// A large count, in thousands.
pub(crate) fn thousands(count: f64) -> String {
    format!("{:.1}k", count / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_keep_their_digits() {
        let cases = [
            (1.62, "+162 %"),
            (-0.104, "-10 %"),
            (0.0487, "+4.9 %"),
            (0.0097, "+0.97 %"),
            (0.000_11, "+0.011 %"),
            (-0.000_001, "0 %"),
            (0.0, "0 %"),
            (f64::INFINITY, "+infinite"),
            (f64::NAN, "unknown"),
        ];
        for (value, text) in cases {
            assert_eq!(percent(value), text);
        }
    }
}
