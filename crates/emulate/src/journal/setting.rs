//! Encoding of link settings in a journal.

use swell_base::{Bytes, Direction, Dur, QueueLimit, Rate, Time};
use swell_path::Loss;
use swell_world::LinkSetting;

use super::entry::{Entry, LONGEST_DELAY, RECORD, word};

const DOWN: u8 = 1;
const RATE: u8 = 2;
const DELAY: u8 = 4;
const LOSS: u8 = 8;
const QUEUE: u8 = 16;

pub(super) fn flags(direction: Direction, s: &LinkSetting) -> u8 {
    let flag = |has: bool, flag| if has { flag } else { 0 };
    flag(direction == Direction::Down, DOWN)
        | flag(s.rate.is_some(), RATE)
        | flag(s.delay.is_some(), DELAY)
        | flag(s.loss.is_some(), LOSS)
        | flag(s.queue.is_some(), QUEUE)
}

/// The kind and value of a queue limit. For links of a world, multiples of a bandwidth-delay product have been
/// resolved before.
fn limit(limit: Option<QueueLimit>) -> (u8, u64) {
    match limit {
        None => (0, 0),
        Some(QueueLimit::Packets(n)) => (0, n),
        Some(QueueLimit::Bytes(n)) => (1, n.0),
        Some(QueueLimit::Time(span)) => (2, span.as_nanos()),
        Some(QueueLimit::Bdp(times)) => (3, times.to_bits()),
    }
}

fn losses(loss: Option<Loss>) -> (u8, [f64; 4]) {
    match loss.unwrap_or_default() {
        Loss::None => (0, [0.0; 4]),
        Loss::Independent { p } => (1, [p, 0.0, 0.0, 0.0]),
        Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_bad,
            loss_good,
        } => (2, [to_bad, to_good, loss_bad, loss_good]),
    }
}

pub(super) fn kinds(s: &LinkSetting) -> [u8; 2] {
    [limit(s.queue).0, losses(s.loss).0]
}

/// The two records that follow the first one.
pub(super) fn rest(s: &LinkSetting) -> [u8; 2 * RECORD] {
    let delay = s.delay.map_or(0, Dur::as_nanos);
    let mut words = vec![delay, limit(s.queue).1];
    words.extend(losses(s.loss).1.map(f64::to_bits));
    let mut bytes = [0; 2 * RECORD];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

pub(super) fn read(r: &[u8], rest: &[u8]) -> Result<Entry, &'static str> {
    let has = |flag| r[1] & flag != 0;
    let number = word(rest, 8);
    let queue = match r[2] {
        0 => QueueLimit::Packets(number),
        1 => QueueLimit::Bytes(Bytes(number)),
        2 => QueueLimit::Time(Dur::from_nanos(number)),
        3 => QueueLimit::Bdp(f64::from_bits(number)),
        _ => return Err("an unknown kind of queue limit"),
    };
    let p = [16, 24, 32, 40].map(|from| f64::from_bits(word(rest, from)));
    if p.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return Err("a loss that is not a probability");
    }
    let [to_bad, to_good, loss_bad, loss_good] = p;
    let loss = match r[3] {
        0 => Loss::None,
        1 => Loss::Independent { p: to_bad },
        2 => Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_bad,
            loss_good,
        },
        _ => return Err("an unknown kind of loss"),
    };
    let (rate, delay) = (Rate::from_bps(word(r, 12)), Dur::from_nanos(word(rest, 0)));
    if has(RATE) && rate.bps() == 0 {
        return Err("a rate of zero");
    }
    if delay > LONGEST_DELAY {
        return Err("a delay of more than an hour");
    }
    Ok(Entry::Set {
        at: Time::from_nanos(word(r, 4)),
        link: u16::from_le_bytes([r[20], r[21]]),
        direction: match has(DOWN) {
            true => Direction::Down,
            false => Direction::Up,
        },
        setting: LinkSetting {
            rate: has(RATE).then_some(rate),
            delay: has(DELAY).then_some(delay),
            loss: has(LOSS).then_some(loss),
            queue: has(QUEUE).then_some(queue),
        },
    })
}
