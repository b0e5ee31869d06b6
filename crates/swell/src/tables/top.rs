//! The table of `swell top`.

use super::list;
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
        let dropped = now.dropped[way].saturating_sub(before.dropped[way]);
        text += &format!(
            "{way:5} {:8.2} Mbit/s of the programs, {:8.2} of the background, {dropped} packets dropped\n",
            carried[0], carried[1]
        );
    }
    text += &format!("background: {} connections open\n", now.background_flows);
    if !now.follows_flows {
        return text + "a bridge does not follow the flows that cross it";
    }
    let mut flows: Vec<_> = since(before, now).into_iter().zip(&now.flows).collect();
    flows.sort_by_key(|(new, _)| std::cmp::Reverse(new[0] + new[1]));
    let mut table = list(&[
        "flow",
        "age, s",
        "Mbit/s\nup",
        "Mbit/s\ndown",
        "MB up",
        "MB down",
        "sent again\nup",
        "\ndown",
    ]);
    for (new, flow) in flows.iter().take(MOST) {
        let mega = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6);
        table.add_row([
            flow.name.clone(),
            format!("{:.1}", flow.age),
            format!("{:.2}", mbit(new[0])),
            format!("{:.2}", mbit(new[1])),
            mega(flow.bytes[0]),
            mega(flow.bytes[1]),
            flow.retransmissions[0].to_string(),
            flow.retransmissions[1].to_string(),
        ]);
    }
    match flows.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{text}{table}\nand {more} more"),
        _ => format!("{text}{table}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
