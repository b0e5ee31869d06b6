//! The table of `swell top`.

use super::text::{list, too_wide};
use crate::control::answer::{Answer, since};
use swell_base::Direction;

/// Maximum number of flows shown, about a screen.
const MOST: usize = 40;

/// The change of an emulation between two answers: the link, then the flows with the most traffic.
pub(crate) fn top(before: &Answer, now: &Answer) -> String {
    let seconds = (now.at - before.at).max(1e-9);
    let mbit = |bytes: u64| bytes as f64 * 8.0 / seconds / 1e6;
    let mut text = format!(
        "{}: {:.0} s, late by {:.0} us (p99)\n",
        now.title, now.at, now.late_us
    );
    for way in Direction::BOTH {
        let carried =
            [0, 1].map(|who| mbit(now.carried[way][who].saturating_sub(before.carried[way][who])));
        let dropped = now.dropped[way].saturating_sub(before.dropped[way]) as f64 / seconds;
        text += &format!(
            "{way:5} {:8.2} Mbit/s of programs, {:8.2} of background, {dropped:.0} drops/s\n",
            carried[0], carried[1]
        );
    }
    text += &format!("background: {} connections open\n", now.background_flows);
    if !now.follows_flows {
        return text + "a bridge does not follow the flows that cross it";
    }
    let mut flows: Vec<_> = since(before, now).into_iter().zip(&now.flows).collect();
    flows.sort_by_key(|(new, _)| std::cmp::Reverse(new[0] + new[1]));
    let shown = |name: fn(&str) -> String| {
        let mut table = list(&[
            "flow",
            "age, s",
            "Mbit/s\nup",
            "Mbit/s\ndown",
            "MB\nup",
            "MB\ndown",
            "sent\nagain\nup",
            "\n\ndown",
        ]);
        for (new, flow) in flows.iter().take(MOST) {
            let mega = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6);
            table.add_row([
                name(&flow.name),
                format!("{:.1}", flow.age),
                format!("{:.2}", mbit(new[0])),
                format!("{:.2}", mbit(new[1])),
                mega(flow.bytes[0]),
                mega(flow.bytes[1]),
                flow.retransmissions[0].to_string(),
                flow.retransmissions[1].to_string(),
            ]);
        }
        table
    };
    let mut table = shown(str::to_owned);
    if too_wide(&table) {
        // The two ends of a flow in a line each.
        table = shown(|name| name.replace(" > ", "\n  > "));
    }
    match flows.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{text}{table}\nand {more} more"),
        _ => format!("{text}{table}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::answer::Flow;

    /// With the longest addresses that emulations have.
    #[test]
    fn everything_fits_into_eighty_columns() {
        let flow = |name: &str| Flow {
            name: name.into(),
            age: 123.4,
            bytes: [1_234_560_000, 999_990_000],
            retransmissions: [123, 1234],
        };
        let now = |names: &[&str]| Answer {
            at: 10.0,
            follows_flows: true,
            carried: [[125_000_000; 2]; 2],
            dropped: [12_300; 2],
            flows: names.iter().map(|name| flow(name)).collect(),
            ..Answer::default()
        };
        let before = Answer::default();
        let (v4, v6) = (
            "tcp 198.18.0.1:41234 > 198.18.1.1:80",
            "tcp [2001:2:0:101::1]:41234 > [2001:2:0:1::ffff]:65535",
        );
        for names in [&[v4][..], &[v6], &[v4, v6]] {
            let shown = top(&before, &now(names));
            for line in shown.lines() {
                assert!(line.chars().count() <= 80, "{shown}");
            }
        }
        let shown = top(&before, &now(&[v6]));
        assert!(shown.contains(", 1230 drops/s"), "{shown}");
        assert!(shown.contains("\n  > [2001:2:0:1::ffff]:65535"), "{shown}");
    }

    #[test]
    fn only_what_follows_flows_has_a_table_of_them() {
        let answer = |follows_flows| Answer {
            follows_flows,
            ..Answer::default()
        };
        let shown = |follows| top(&answer(follows), &answer(follows));
        assert!(shown(true).contains("age, s"));
        let bridge = shown(false);
        assert!(
            !bridge.contains("age, s") && bridge.contains("does not follow"),
            "{bridge}"
        );
    }
}
