//! The interface of everything that packets pass through.

use swell_base::{Packet, Time};

use crate::Ledger;

/// A stage of a path. The crate's front page lists its guarantees.
pub trait Element {
    /// A packet arrives; `at` never decreases from call to call.
    fn push(&mut self, at: Time, packet: Packet);

    /// When `pop` may next return a packet: never later than the next departure.
    fn poll_at(&self) -> Option<Time>;

    /// The next departure and its instant, if that is not later than `now`.
    fn pop(&mut self, now: Time) -> Option<(Time, Packet)>;

    /// Counts of packets that arrived, departed and were dropped.
    fn ledger(&self) -> Ledger;
}

/// Two elements in series.
#[derive(Clone, Debug)]
pub struct Chain<A, B> {
    /// The element that packets enter.
    pub first: A,
    /// The element that packets leave.
    pub second: B,
}

impl<A: Element, B: Element> Element for Chain<A, B> {
    fn push(&mut self, at: Time, packet: Packet) {
        self.first.push(at, packet);
    }

    fn poll_at(&self) -> Option<Time> {
        match (self.first.poll_at(), self.second.poll_at()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        // Every departure from the first by `now` must enter the second before the second is asked for output.
        while let Some((at, packet)) = self.first.pop(now) {
            self.second.push(at, packet);
        }
        self.second.pop(now)
    }

    fn ledger(&self) -> Ledger {
        let (a, b) = (self.first.ledger(), self.second.ledger());
        let mut dropped = a.dropped;
        for (sum, d) in dropped.iter_mut().zip(b.dropped) {
            *sum += d;
        }
        Ledger {
            arrived: a.arrived,
            departed: b.departed,
            dropped,
            marked: a.marked + b.marked,
        }
    }
}

impl<E: Element + ?Sized> Element for Box<E> {
    fn push(&mut self, at: Time, packet: Packet) {
        (**self).push(at, packet);
    }
    fn poll_at(&self) -> Option<Time> {
        (**self).poll_at()
    }
    fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        (**self).pop(now)
    }
    fn ledger(&self) -> Ledger {
        (**self).ledger()
    }
}
