//! Who is unchoked: the choice of the client, and that of a remote peer.

use std::cmp::Reverse;

use swell_base::{Dur, Rate, Stream};

/// Time between two decisions of a peer (BEP 3, "only changing who's choked once every ten seconds").
pub(super) const ROUND: Dur = Dur::from_secs(10);
/// Rounds for which an optimistic unchoke lasts: 30 seconds (BEP 3).
pub(super) const OPTIMISTIC: u32 = 3;
/// Rounds whose bytes count as the rate of a peer: 20 seconds (Cohen, Incentives Build Robustness in BitTorrent,
/// 2003, section 4.2).
const COUNTED: u64 = 2;

/// Bytes received in the current round and in the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    now: u64,
    before: u64,
}

impl Meter {
    pub fn add(&mut self, bytes: u64) {
        self.now += bytes;
    }

    /// Ends a round. Returns the bytes of the last two.
    pub fn turn(&mut self) -> u64 {
        let both = self.now + self.before;
        *self = Meter {
            now: 0,
            before: self.now,
        };
        both
    }
}

/// A remote peer, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// It wants blocks.
    pub interested: bool,
    /// The client unchokes it at present.
    pub unchoked: bool,
    /// Bytes that it gave in the last two rounds.
    pub gave: u64,
}

/// The client's choice: of those interested, the `slots` - 1 that gave most, and an optimistic one, which counts as
/// one of the `slots` (BEP 3).
#[derive(Debug)]
pub(super) struct Choker {
    slots: usize,
    round: u32,
    optimistic: Option<usize>,
    random: Stream,
}

impl Choker {
    pub fn new(slots: u32, random: Stream) -> Choker {
        Choker {
            slots: slots.max(1) as usize,
            round: 0,
            optimistic: None,
            random,
        }
    }

    /// Whom the client unchokes from now on. Of equal peers the unchoked ones stay. The optimistic one is drawn anew
    /// every third round, and when it earns a slot of its own.
    pub fn turn(&mut self, peers: &[Candidate]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..peers.len()).filter(|&i| peers[i].interested).collect();
        order.sort_by_key(|&i| (Reverse(peers[i].gave), !peers[i].unchoked, i));
        let (best, rest) = order.split_at((self.slots - 1).min(order.len()));
        let stays = !self.round.is_multiple_of(OPTIMISTIC);
        self.optimistic = match self.optimistic {
            Some(peer) if stays && rest.contains(&peer) => Some(peer),
            _ => {
                let drawn = self.random.below(rest.len() as u64);
                rest.get(drawn as usize).copied()
            }
        };
        self.round += 1;
        let mut unchoked = vec![false; peers.len()];
        for &i in best.iter().chain(&self.optimistic) {
            unchoked[i] = true;
        }
        unchoked
    }
}

/// The rivals of the client at its remote peers.
#[derive(Debug)]
pub(super) struct Market {
    /// What each downloading peer offers to one that it unchokes. Rivals are drawn from these.
    pub offers: Vec<Rate>,
    /// Peers that a remote peer unchokes.
    pub slots: u32,
    /// Peers that a remote peer has.
    pub peers: u32,
}

/// A remote peer's choice between the client and rivals, whose traffic is elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chooser {
    /// A seed downloads nothing, so it compares nothing.
    pub seed: bool,
    round: u32,
    /// Bytes in two rounds that the weakest of its other partners gives it.
    weakest: u64,
    optimistic: bool,
}

impl Chooser {
    pub fn new(seed: bool) -> Chooser {
        Chooser {
            seed,
            ..Chooser::default()
        }
    }

    /// Whether it unchokes the client, which gave it `gave` bytes in the last two rounds.
    ///
    /// The law, drawn anew every third round: a downloading peer has `slots` - 1 partners, whose offers are drawn from
    /// the market. Each partner gives a uniform share of its offer. The client is a partner if it gives more than the
    /// weakest. Otherwise it is the optimistic unchoke with the probability of one among all others. A seed unchokes
    /// `slots` of its peers at random: seeds serve everybody for the same time (Legout, Urvoy-Keller & Michiardi,
    /// IMC 2006).
    pub fn turn(&mut self, gave: u64, market: &Market, random: &mut Stream) -> bool {
        if self.round.is_multiple_of(OPTIMISTIC) {
            let (slots, peers) = (f64::from(market.slots), f64::from(market.peers));
            let odds = match self.seed {
                true => slots / peers,
                false => 1.0 / (peers - slots + 1.0).max(1.0),
            };
            self.optimistic = random.chance(odds.min(1.0));
            let mut partner = || {
                let drawn = random.below(market.offers.len() as u64);
                let offer = market.offers.get(drawn as usize).copied();
                let whole = offer.unwrap_or_default().carried_in(ROUND * COUNTED).0;
                (whole as f64 * random.uniform()) as u64
            };
            let partners = (1..market.slots).map(|_| partner());
            self.weakest = partners.min().unwrap_or(u64::MAX);
        }
        self.round += 1;
        self.optimistic || (!self.seed && gave > self.weakest)
    }
}
