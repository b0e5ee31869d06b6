//! Loss synchronisation: whether flows lose packets at the same time.

/// How far the losses of different flows coincide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synchrony {
    /// Bins in which any flow lost a packet.
    pub events: usize,
    /// Mean share of the flows that lost a packet in such a bin.
    pub share: f64,
    /// The expected share if every flow lost independently, in as many bins as it does.
    pub independent: f64,
}

/// Coincidence of `losses`, given as (second, flow) in any order, in bins of `width` seconds; one RTT is the natural
/// width. `flows` is the number of flows. `None` without flows or losses, or if the width is not positive.
///
/// Suppose flows are independent and a flow loses in a share q of the `n` bins. Then a share `1 - prod(1 - q)` of the
/// bins are events, and a share `mean(q)` of the flows loses in a bin. The expected share in an event is the
/// quotient.
pub fn synchrony(
    losses: &[(f64, u32)],
    flows: u32,
    width: f64,
    duration: f64,
) -> Option<Synchrony> {
    if flows == 0 || losses.is_empty() || width.is_nan() || width <= 0.0 || duration < width {
        return None;
    }
    // 0.3 / 0.1 is less than three.
    let bins = (duration / width + 1e-9).floor();
    let mut hits: Vec<(u64, u32)> = losses
        .iter()
        .map(|&(at, flow)| ((at / width) as u64, flow))
        .filter(|&(bin, _)| (bin as f64) < bins)
        .collect();
    hits.sort_unstable();
    hits.dedup();
    if hits.is_empty() {
        return None;
    }
    let mut events = hits.iter().map(|h| h.0).collect::<Vec<_>>();
    events.dedup();
    let per_event = hits.len() as f64 / events.len() as f64;
    let mut by_flow: Vec<u32> = hits.iter().map(|h| h.1).collect();
    by_flow.sort_unstable();
    let none: f64 = by_flow
        .chunk_by(|a, b| a == b)
        .map(|of_one| 1.0 - of_one.len() as f64 / bins)
        .product();
    let expected = hits.len() as f64 / bins / (1.0 - none);
    Some(Synchrony {
        events: events.len(),
        share: per_event / f64::from(flows),
        independent: expected / f64::from(flows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_base::Stream;

    #[test]
    fn all_together_is_one_and_in_turn_is_one_over_the_flows() {
        let together: Vec<(f64, u32)> = (0..50)
            .flat_map(|i| (0..10).map(move |f| (f64::from(i) * 2.0 + 0.3, f)))
            .collect();
        let s = synchrony(&together, 10, 1.0, 100.0).unwrap();
        assert_eq!((s.events, s.share), (50, 1.0));
        // Each flow loses in half of the bins: a share of 1 - 2^-10 of the bins would be events, in which about half
        // lose.
        assert!((s.independent - 0.5 / (1.0 - 1.0 / 1024.0)).abs() < 1e-12);
        let in_turn: Vec<(f64, u32)> = (0..50).map(|i| (f64::from(i), i as u32 % 10)).collect();
        let turns = synchrony(&in_turn, 10, 1.0, 100.0).unwrap();
        assert_eq!((turns.events, turns.share), (50, 0.1));
    }

    #[test]
    fn independent_losses_are_independent() {
        let mut rng = Stream::new(1, "synchrony");
        let losses: Vec<(f64, u32)> = (0..4000)
            .map(|_| (rng.uniform() * 5000.0, rng.below(20) as u32))
            .collect();
        let s = synchrony(&losses, 20, 1.0, 5000.0).unwrap();
        assert!((s.share / s.independent - 1.0).abs() < 0.02, "{s:?}");
    }

    #[test]
    fn nothing_to_say_is_none() {
        assert_eq!(synchrony(&[], 3, 0.1, 10.0), None);
        assert_eq!(synchrony(&[(1.0, 0)], 0, 0.1, 10.0), None);
        assert_eq!(synchrony(&[(1.0, 0)], 3, 0.0, 10.0), None);
        assert_eq!(synchrony(&[(20.0, 0)], 3, 0.1, 10.0), None);
    }
}
