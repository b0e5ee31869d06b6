//! Parses times.

const SECOND: i64 = 1_000_000_000;

/// Parses a time and returns nanoseconds since the Unix epoch. It is a number of seconds since the epoch with a
/// fraction, or a date and a time of day: `2009-11-18 09:00:03.9`. Dates may have `/`, `T` or `+` as separators, and
/// may end with `Z`, `+hhmm` or `+hh:mm`. Without a zone they are in UTC. The fraction is truncated to nanoseconds.
pub(super) fn parse(text: &str) -> Option<i64> {
    match date(text) {
        Some(time) => Some(time),
        None => span(text),
    }
}

/// Parses a number of seconds with a fraction, without rounding.
pub(super) fn span(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    // Programs that write JSON use exponents for small numbers.
    if digits.contains(['e', 'E']) {
        let seconds: f64 = text.parse().ok()?;
        let nanos = seconds * SECOND as f64;
        return (nanos.abs() < 9e18).then_some(nanos.round() as i64);
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let nanos = whole
        .checked_mul(SECOND)?
        .checked_add(nanos_of(fraction)?)?;
    Some(sign * nanos)
}

/// The first nine digits of a fraction of a second, as nanoseconds.
fn nanos_of(digits: &str) -> Option<i64> {
    let mut nanos = 0;
    for i in 0..9 {
        let digit = digits.as_bytes().get(i).copied().unwrap_or(b'0');
        nanos = nanos * 10 + i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    digits.bytes().all(|b| b.is_ascii_digit()).then_some(nanos)
}

fn date(text: &str) -> Option<i64> {
    let field = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        let all = digits.bytes().all(|b| b.is_ascii_digit());
        all.then(|| digits.parse().ok())?
    };
    let at = |i: usize| text.as_bytes().get(i).copied();
    let dates = matches!((at(4)?, at(7)?), (b'-', b'-') | (b'/', b'/'));
    let times = matches!(at(10)?, b' ' | b'T' | b'+') && at(13)? == b':' && at(16)? == b':';
    if !dates || !times {
        return None;
    }
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let zone_at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (fraction, zone) = rest.split_at(zone_at);
    let nanos = nanos_of(fraction.strip_prefix('.').unwrap_or(fraction))?;
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second.min(60);
    (seconds - offset(zone)?)
        .checked_mul(SECOND)?
        .checked_add(nanos)
}

/// The offset of a zone in seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.bytes().next() {
        None | Some(b'Z') => return Some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let digits: String = zone[1..].chars().filter(|c| *c != ':').collect();
    if digits.len() != 4 {
        return None;
    }
    let n: i64 = digits.parse().ok()?;
    Some(sign * (n / 100 * 3600 + n % 100 * 60))
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are taken to begin in March, so that the leap day is their
/// last; 400 years have 146 097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_numbers_are_the_same_times() {
        // From `date -u -d @1258531203 +%FT%T`.
        let expected = Some(1_258_534_803_914_398_000);
        for text in [
            "2009-11-18+09:00:03.914398",
            "2009/11/18 09:00:03.914398",
            "2009-11-18T09:00:03.914398Z",
            "2009-11-18T11:00:03.914398+0200",
            "2009-11-18T04:30:03.914398-04:30",
            "1258534803.914398",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(parse("2000-02-29 00:00:00"), Some(951_782_400 * SECOND));
        assert_eq!(parse("1969-12-31 23:59:59"), Some(-SECOND));
        assert_eq!(span("0.000001"), Some(1000));
        assert_eq!(span("9.5e-05"), Some(95_000));
        assert_eq!(span("-1.5"), Some(-1_500_000_000));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "2009-13-01 00:00:00",
            "2009-11-18T09:00:03.9+2",
            "x",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("99999999999999999999"), None);
    }
}
