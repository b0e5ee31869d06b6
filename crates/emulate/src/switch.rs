//! A learning switch: by which of its gates a frame leaves (IEEE 802.1Q sections 8.6 to 8.8).

use std::collections::HashMap;

use swell_base::{Dur, Time};

/// How long an address is known after its last frame (IEEE 802.1Q section 8.8.3, the default of the ageing time).
const AGEING: Dur = Dur::from_secs(300);
/// Most addresses known at a time. Hosts could make the table grow with invented addresses, so further ones are not
/// learnt, and frames to them go everywhere.
const MOST: usize = 1 << 14;
/// A full table is searched for old addresses at most this often, because the search takes time.
const SWEEP: Dur = Dur::from_secs(1);

/// The gates by which a frame leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exits {
    /// None: its destination is where it came from.
    Nowhere,
    /// One gate.
    One(usize),
    /// All gates but this one.
    Others(usize),
}

/// A learning switch. Its gates have numbers.
#[derive(Debug, Default)]
pub(crate) struct Switch {
    known: HashMap<Station, Seen>,
    swept: Option<Time>,
}

/// An address in a virtual LAN. One address may be behind different gates in different virtual LANs.
type Station = ([u8; 6], u16);

/// Where a station was last seen.
#[derive(Debug)]
struct Seen {
    gate: usize,
    at: Time,
}

/// Whether a frame goes to a group, or to everybody: the group bit of its destination (IEEE 802 section 8.2.2).
pub(crate) fn is_for_a_group(frame: &[u8]) -> bool {
    frame.first().is_some_and(|b| b & 1 != 0)
}

/// The destination and the source of a frame; `None` if it is too short to have them.
fn stations(frame: &[u8]) -> Option<[Station; 2]> {
    let to = *frame.first_chunk::<6>()?;
    let from = *frame.get(6..)?.first_chunk::<6>()?;
    let lan = match frame.get(12..16) {
        Some(&[0x81, 0x00, high, low] | &[0x88, 0xa8, high, low]) => {
            u16::from_be_bytes([high & 0x0f, low])
        }
        // A frame without a tag, and one whose tag carries only a priority, belong to the same LAN: number 0.
        _ => 0,
    };
    Some([(to, lan), (from, lan)])
}

impl Switch {
    /// Learns where the sender of a frame is, which came in by gate `from`, and tells where the frame goes.
    pub fn forward(&mut self, at: Time, from: usize, frame: &[u8]) -> Exits {
        let Some([to, sender]) = stations(frame) else {
            return Exits::Others(from);
        };
        self.learn(at, from, sender);
        if is_for_a_group(frame) {
            return Exits::Others(from);
        }
        match self.known.get(&to) {
            Some(seen) if at.since(seen.at) > AGEING => Exits::Others(from),
            Some(seen) if seen.gate == from => Exits::Nowhere,
            Some(seen) => Exits::One(seen.gate),
            None => Exits::Others(from),
        }
    }

    /// Forgets the addresses behind a gate.
    pub fn forget(&mut self, gate: usize) {
        self.known.retain(|_, seen| seen.gate != gate);
    }

    fn learn(&mut self, at: Time, gate: usize, sender: Station) {
        if is_for_a_group(&sender.0) || sender.0 == [0; 6] {
            return;
        }
        if let Some(seen) = self.known.get_mut(&sender) {
            // Frames that come from a link are looked at after some that came in later.
            if at >= seen.at {
                *seen = Seen { gate, at };
            }
            return;
        }
        if self.known.len() >= MOST && self.swept.is_none_or(|last| at.since(last) >= SWEEP) {
            self.swept = Some(at);
            self.known.retain(|_, seen| at.since(seen.at) <= AGEING);
        }
        if self.known.len() < MOST {
            self.known.insert(sender, Seen { gate, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYBODY: [u8; 6] = [0xff; 6];

    fn host(number: u32) -> [u8; 6] {
        let [a, b, c, d] = number.to_be_bytes();
        [2, 0, a, b, c, d]
    }

    fn frame(to: [u8; 6], from: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&to[..], &from, rest].concat()
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Dur::from_secs(seconds)
    }

    #[test]
    fn a_switch_learns_where_hosts_are_and_that_they_moved() {
        let mut switch = Switch::default();
        let plain = |to, from| frame(to, from, &[8, 0]);
        let (a, b) = (host(1), host(2));
        // Unknown destinations, groups and everybody: all other gates.
        assert_eq!(switch.forward(at(0), 0, &plain(b, a)), Exits::Others(0));
        assert_eq!(
            switch.forward(at(0), 0, &plain(EVERYBODY, a)),
            Exits::Others(0)
        );
        let group = [0x33, 0x33, 0, 0, 0, 1];
        assert_eq!(switch.forward(at(0), 0, &plain(group, a)), Exits::Others(0));
        // The answer goes to one gate, and from then on both directions do.
        assert_eq!(switch.forward(at(1), 1, &plain(a, b)), Exits::One(0));
        assert_eq!(switch.forward(at(1), 0, &plain(b, a)), Exits::One(1));
        // A frame never leaves by the gate by which it came.
        assert_eq!(switch.forward(at(1), 1, &plain(b, a)), Exits::Nowhere);
        // The last frame made host a move to gate 1; now it is at gate 2.
        assert_eq!(
            switch.forward(at(2), 2, &plain(EVERYBODY, a)),
            Exits::Others(2)
        );
        assert_eq!(switch.forward(at(2), 1, &plain(a, b)), Exits::One(2));
    }

    #[test]
    fn an_older_frame_does_not_move_a_host_back() {
        let mut switch = Switch::default();
        let hello = frame(EVERYBODY, host(1), &[8, 6]);
        switch.forward(at(5), 2, &hello);
        switch.forward(at(4), 0, &hello);
        let to = frame(host(1), host(2), &[8, 0]);
        assert_eq!(switch.forward(at(6), 1, &to), Exits::One(2));
    }

    #[test]
    fn an_address_is_forgotten_after_300_seconds_of_silence() {
        let mut switch = Switch::default();
        let (a, b) = (host(1), host(2));
        let hello = frame(EVERYBODY, a, &[8, 6]);
        let answer = frame(a, b, &[8, 6]);
        switch.forward(at(10), 0, &hello);
        assert_eq!(switch.forward(at(310), 1, &answer), Exits::One(0));
        assert_eq!(switch.forward(at(311), 1, &answer), Exits::Others(1));
        // Any frame of it renews its time.
        switch.forward(at(400), 0, &hello);
        switch.forward(at(600), 0, &hello);
        assert_eq!(switch.forward(at(900), 1, &answer), Exits::One(0));
    }

    #[test]
    fn what_was_behind_a_gate_can_be_forgotten() {
        let mut switch = Switch::default();
        for number in 0..4 {
            let hello = frame(EVERYBODY, host(number), &[8, 6]);
            switch.forward(at(0), number as usize % 2, &hello);
        }
        switch.forget(0);
        let to = |number| frame(host(number), host(9), &[8, 0]);
        let exits = [0, 1, 2, 3].map(|number| switch.forward(at(1), 7, &to(number)));
        let (known, unknown) = (Exits::One(1), Exits::Others(7));
        assert_eq!(exits, [unknown, known, unknown, known]);
    }

    #[test]
    fn virtual_lans_have_tables_of_their_own() {
        let mut switch = Switch::default();
        let (a, b) = (host(1), host(2));
        let tagged = |to, from, tag: [u8; 4]| frame(to, from, &[&tag[..], &[8, 0]].concat());
        let seven = [0x81, 0, 0, 7];
        // The same address at gate 0 in LAN 7 and at gate 2 in LAN 8; priorities do not matter.
        switch.forward(at(0), 0, &tagged(EVERYBODY, a, [0x81, 0, 0xe0, 7]));
        switch.forward(at(0), 2, &tagged(EVERYBODY, a, [0x88, 0xa8, 0, 8]));
        assert_eq!(
            switch.forward(at(0), 1, &tagged(a, b, seven)),
            Exits::One(0)
        );
        assert_eq!(
            switch.forward(at(0), 1, &tagged(a, b, [0x81, 0, 0x20, 8])),
            Exits::One(2)
        );
        // It was never seen without a tag.
        let untagged = frame(a, b, &[8, 0]);
        assert_eq!(switch.forward(at(0), 1, &untagged), Exits::Others(1));
        switch.forward(at(0), 3, &tagged(EVERYBODY, a, [0x81, 0, 0xe0, 0]));
        assert_eq!(switch.forward(at(0), 1, &untagged), Exits::One(3));
    }

    #[test]
    fn invented_addresses_do_not_make_the_table_grow() {
        let mut switch = Switch::default();
        for number in 0..3 * MOST as u32 {
            switch.forward(at(1), 0, &frame(EVERYBODY, host(number), &[8, 6]));
        }
        assert_eq!(switch.known.len(), MOST);
        // The ones that came first are known, later ones are not.
        let to = |number| frame(host(number), host(0), &[8, 0]);
        assert_eq!(switch.forward(at(1), 1, &to(7)), Exits::One(0));
        let late = MOST as u32 + 7;
        assert_eq!(switch.forward(at(1), 1, &to(late)), Exits::Others(1));
        // Once they are old, they make room.
        switch.forward(at(400), 2, &frame(EVERYBODY, host(late), &[8, 6]));
        assert_eq!(switch.forward(at(400), 1, &to(late)), Exits::One(2));
        assert!(switch.known.len() < 4);
    }

    #[test]
    fn addresses_that_no_host_can_have_are_not_learnt() {
        let mut switch = Switch::default();
        for odd in [EVERYBODY, [1, 0, 0, 0, 0, 1], [0; 6]] {
            switch.forward(at(0), 0, &frame(host(1), odd, &[8, 0]));
        }
        assert!(switch.known.is_empty());
        for length in 0..12 {
            assert_eq!(
                switch.forward(at(0), 1, &vec![2; length]),
                Exits::Others(1),
                "{length}"
            );
        }
        assert!(switch.known.is_empty());
    }
}
