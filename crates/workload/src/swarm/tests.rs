//! Who is unchoked: laws of the two choices.

use proptest::prelude::*;
use swell_base::{Rate, Stream};

use super::choke::{Candidate, Choker, Chooser, Market, Meter, OPTIMISTIC, ROUND};

fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    // Few values, so that many are equal.
    let one = (any::<bool>(), any::<bool>(), 0..5u64);
    let one = one.prop_map(|(interested, unchoked, gave)| Candidate {
        interested,
        unchoked,
        gave,
    });
    prop::collection::vec(one, 0..40)
}

proptest! {
    /// In any sequence of rounds: all slots are used while peers are interested, nobody else is unchoked, and at most
    /// one unchoked peer gave less than a choked one.
    #[test]
    fn the_best_and_one_more_are_unchoked(
        rounds in prop::collection::vec(candidates(), 1..8),
        slots in 1..10u32,
        seed: u64,
    ) {
        let mut choker = Choker::new(slots, Stream::new(seed, "t"));
        for peers in rounds {
            let unchoked = choker.turn(&peers);
            let interested = peers.iter().filter(|p| p.interested).count();
            let count = unchoked.iter().filter(|&&u| u).count();
            prop_assert_eq!(unchoked.len(), peers.len());
            prop_assert_eq!(count, interested.min(slots as usize));
            let all = || peers.iter().zip(&unchoked);
            prop_assert!(all().all(|(p, u)| p.interested || !u));
            let most_choked = all().filter(|(p, u)| p.interested && !*u).map(|(p, _)| p.gave).max();
            let worse = all().filter(|(p, u)| **u && Some(p.gave) < most_choked).count();
            prop_assert!(worse <= 1, "{worse} of {peers:?}");
        }
    }
}

fn peers(each: &[u64]) -> Vec<Candidate> {
    let one = |&gave| Candidate {
        interested: true,
        unchoked: false,
        gave,
    };
    each.iter().map(one).collect()
}

#[test]
fn the_optimistic_unchoke_lasts_three_rounds_and_takes_all_in_turn() {
    let mut choker = Choker::new(3, Stream::new(1, "t"));
    let peers = peers(&[9, 0, 8, 0, 0, 0]);
    let mut drawn = [0; 6];
    for _ in 0..4000 {
        let first = choker.turn(&peers);
        assert!(first[0] && first[2], "{first:?}");
        for _ in 1..OPTIMISTIC {
            assert_eq!(choker.turn(&peers), first);
        }
        for i in [1, 3, 4, 5] {
            drawn[i] += u32::from(first[i]);
        }
    }
    // Four standard deviations of a share of a quarter.
    for i in [1, 3, 4, 5] {
        assert!(drawn[i].abs_diff(1000) < 110, "{drawn:?}");
    }
}

/// Otherwise its slot would be lost for up to twenty seconds.
#[test]
fn an_optimistic_peer_that_earns_a_slot_makes_room_for_another() {
    let mut choker = Choker::new(2, Stream::new(1, "t"));
    let first = choker.turn(&peers(&[9, 0, 0, 0]));
    let optimistic = (1..4).find(|&i| first[i]).unwrap();
    let mut gave = [9, 0, 0, 0];
    gave[optimistic] = 20;
    let second = choker.turn(&peers(&gave));
    assert!(second[optimistic]);
    assert_eq!(second.iter().filter(|&&u| u).count(), 2);
}

#[test]
fn of_equal_peers_the_unchoked_ones_stay() {
    let mut peers = peers(&[0; 8]);
    let mut choker = Choker::new(5, Stream::new(1, "t"));
    let first = choker.turn(&peers);
    for (peer, &unchoked) in peers.iter_mut().zip(&first) {
        peer.unchoked = unchoked;
    }
    let second = choker.turn(&peers);
    let stay = (0..8).filter(|&i| first[i] && second[i]).count();
    assert!(stay >= 4, "{first:?} {second:?}");
}

#[test]
fn a_rate_is_of_the_last_two_rounds() {
    let mut meter = Meter::default();
    meter.add(5);
    assert_eq!(meter.turn(), 5);
    meter.add(7);
    assert_eq!(meter.turn(), 12);
    assert_eq!(meter.turn(), 7);
    assert_eq!(meter.turn(), 0);
}

/// The share of rounds in which a remote peer unchokes a client that gives it `part` of the market's one offer.
fn share(part: f64, slots: u32, peers: u32, seed: bool) -> f64 {
    let offer = Rate::from_bps(400_000);
    let market = Market {
        offers: vec![offer],
        slots,
        peers,
    };
    let gave = (offer.carried_in(ROUND * 2).0 as f64 * part) as u64;
    let mut chooser = Chooser::new(seed);
    let mut random = Stream::new(3, "t");
    let rounds = 60_000;
    let yes = (0..rounds).filter(|_| chooser.turn(gave, &market, &mut random));
    yes.count() as f64 / f64::from(rounds)
}

/// A client beats the weakest of k uniform partners with probability 1 - (1 - x)^k, and is the optimistic unchoke of
/// one in n - slots + 1 peers otherwise.
#[test]
fn a_remote_peer_unchokes_those_who_beat_its_weakest_partner() {
    for (slots, peers) in [(4, 40), (2, 5), (6, 100)] {
        let lucky = 1.0 / f64::from(peers - slots + 1);
        for part in [0.0, 0.1, 0.5, 0.9, 1.0_f64] {
            let beaten = 1.0 - (1.0 - part).powi(slots as i32 - 1);
            let expected = beaten + (1.0 - beaten) * lucky;
            let seen = share(part, slots, peers, false);
            assert!(
                (seen - expected).abs() < 0.012,
                "{part}, {slots} of {peers}: {seen} {expected}"
            );
        }
    }
}

#[test]
fn a_seed_serves_all_alike() {
    for part in [0.0, 1.0] {
        let seen = share(part, 4, 40, true);
        assert!((seen - 0.1).abs() < 0.009, "{seen}");
    }
    assert_eq!(share(0.0, 4, 3, true), 1.0);
}

/// Without rivals everybody is unchoked.
#[test]
fn with_fewer_peers_than_slots_all_are_unchoked() {
    assert_eq!(share(0.0, 4, 4, false), 1.0);
}
