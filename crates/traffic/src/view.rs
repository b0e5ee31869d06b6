//! A connection from some point on, without a copy of what the model has of it.
//!
//! A run begins in the middle of many connections, and often of many copies of one. All but the first items of each rest
//! are the model's own, and may be megabytes. So a rest ([`CutPoint`]) keeps those first items, and the position of the
//! model's item that follows them. A [`ConnectionView`] reads both as one list.

use swell_base::Dur;

use crate::datagrams::step;
use crate::{Connection, Cursor, Exchange, Run, Turn, Unit, Wait, Write};

/// Where a connection is cut.
#[derive(Clone, Debug, PartialEq)]
pub struct CutPoint {
    pub(crate) data: CutData,
    pub(crate) writes: [CutList<Write>; 2],
    /// [`Connection::overlap`] of the rest.
    pub(crate) overlap: Option<[u32; 2]>,
}

/// Where its application data are cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CutData {
    Sequential(CutList<Turn>),
    Concurrent([CutChain; 2]),
    Attempt(CutList<Dur>),
    Packets(CutList<(Dur, bool, u32)>),
    Runs([CutList<Run>; 2]),
}

/// The end of a list: some items of its own, then those of the model's list from an index on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CutList<T> {
    pub first: Box<[T]>,
    pub then: usize,
}

/// The end of a chain of units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CutChain {
    pub list: CutList<Unit>,
    pub heard: Heard,
}

/// Position in the other end's chain, to which the units of a chain refer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Heard {
    /// Its first unit that has not arrived, and its first unit not begun. Those in between are one unit of the rest.
    pub arrived: usize,
    pub begun: usize,
}

impl Heard {
    /// Converts a number of units of the whole chain to a number in the rest of it.
    pub fn of(self, after: u32) -> u32 {
        let Heard { arrived, begun } = self;
        match after as usize {
            n if n <= arrived => 0,
            n if n <= begun => 1,
            n => (n - begun + usize::from(begun > arrived)) as u32,
        }
    }
}

/// A whole connection of a model, or the rest of one.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionView<'m> {
    /// The whole. What is not asked of the part itself is the same for both.
    pub connection: &'m Connection,
    cut: Option<&'m CutPoint>,
}

/// The application data of a part.
#[derive(Clone, Copy, Debug)]
pub enum Data<'m> {
    /// As [`Exchange::Sequential`].
    Sequential(Items<'m, Turn>),
    /// As [`Exchange::Concurrent`]: the chains of the client and of the server.
    Concurrent([Chain<'m>; 2]),
    /// As [`Exchange::Attempt`].
    Attempt {
        /// Pauses before each SYN after the first.
        retries: Items<'m, Dur>,
        /// Whether a RST came back.
        refused: bool,
    },
    /// As [`Exchange::Datagrams`].
    Datagrams(Flow<'m>),
}

/// Some items of a list.
#[derive(Clone, Copy, Debug)]
pub struct Items<'m, T> {
    first: &'m [T],
    then: &'m [T],
}

/// A chain of units.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'m> {
    items: Items<'m, Unit>,
    heard: Heard,
}

/// A datagram flow.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'m> {
    packets: Items<'m, (Dur, bool, u32)>,
    runs: [Items<'m, Run>; 2],
}

impl<T> CutList<T> {
    /// The model's own items from an index on.
    pub fn from(then: usize) -> CutList<T> {
        let first = Box::default();
        CutList { first, then }
    }

    pub(crate) fn of<'m>(&'m self, whole: &'m [T]) -> Items<'m, T> {
        Items {
            first: &self.first,
            then: whole.get(self.then..).unwrap_or_default(),
        }
    }

    /// Index in the whole list of item `i` of the rest, if it has a place there.
    fn whole(&self, i: usize) -> Option<usize> {
        (i + self.then).checked_sub(self.first.len())
    }
}

impl<'m, T: Copy> Items<'m, T> {
    fn all(then: &'m [T]) -> Items<'m, T> {
        Items { first: &[], then }
    }

    /// Number of items.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    #[inline]
    pub fn len(&self) -> usize {
        self.first.len() + self.then.len()
    }

    /// The item at an index.
    #[inline]
    pub fn get(&self, i: usize) -> Option<T> {
        match i.checked_sub(self.first.len()) {
            Some(i) => self.then.get(i).copied(),
            None => self.first.get(i).copied(),
        }
    }

    /// All items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = T> + use<'m, T> {
        self.first.iter().chain(self.then).copied()
    }
}

impl<'m> Chain<'m> {
    fn all(units: &'m [Unit]) -> Chain<'m> {
        Chain {
            items: Items::all(units),
            heard: Heard::default(),
        }
    }

    /// Number of units.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The unit at an index.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Unit> {
        let unit = self.items.get(i)?;
        Some(match i < self.items.first.len() {
            true => unit,
            false => self.placed(unit),
        })
    }

    /// All units in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Unit> + use<'m> {
        let chain = *self;
        let then = chain.items.then.iter().map(move |&u| chain.placed(u));
        chain.items.first.iter().copied().chain(then)
    }

    /// A unit of the model, as one of the part.
    #[inline]
    fn placed(&self, unit: Unit) -> Unit {
        Unit {
            after: self.heard.of(unit.after),
            ..unit
        }
    }
}

impl<'m> Flow<'m> {
    /// As [`Datagrams::step`](crate::Datagrams::step).
    pub fn step(&self, cursor: &mut Cursor) -> Option<(Dur, bool, u32)> {
        let whole = self.runs.iter().all(|runs| runs.len() == 0);
        let packet = |i| self.packets.get(i).filter(|_| whole);
        step(packet, |end, i| self.runs[end].get(i), cursor)
    }

    /// Its runs from the client and from the server.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> [Items<'m, Run>; 2] {
        self.runs
    }

    /// Number of datagrams of the client and of the server.
    pub(crate) fn count(&self) -> [u64; 2] {
        [0, 1].map(|end| {
            let listed = self.packets.iter().filter(|p| p.1 == (end == 0)).count();
            let runs = self.runs[end].iter().map(|r| u64::from(r.packets));
            runs.fold(listed as u64, u64::saturating_add)
        })
    }
}

impl<'m> ConnectionView<'m> {
    /// All of it.
    pub fn whole(connection: &'m Connection) -> ConnectionView<'m> {
        ConnectionView {
            connection,
            cut: None,
        }
    }

    /// The rest of it, if it is cut.
    #[inline]
    pub fn of(connection: &'m Connection, cut: Option<&'m CutPoint>) -> ConnectionView<'m> {
        ConnectionView { connection, cut }
    }

    /// Its application data.
    #[inline]
    pub fn data(&self) -> Data<'m> {
        match self.cut {
            None => match &self.connection.exchange {
                Exchange::Sequential(turns) => Data::Sequential(Items::all(turns)),
                Exchange::Concurrent { up, down } => {
                    Data::Concurrent([up, down].map(|units| Chain::all(units)))
                }
                Exchange::Attempt { retries, refused } => Data::Attempt {
                    retries: Items::all(retries),
                    refused: *refused,
                },
                Exchange::Datagrams(d) => Data::Datagrams(Flow {
                    packets: Items::all(&d.packets),
                    runs: d.runs.each_ref().map(|runs| Items::all(runs)),
                }),
            },
            Some(cut) => self.rest(cut),
        }
    }

    fn rest(&self, cut: &'m CutPoint) -> Data<'m> {
        let none = || Items::all(&[]);
        match (&self.connection.exchange, &cut.data) {
            (Exchange::Sequential(turns), CutData::Sequential(list)) => {
                Data::Sequential(list.of(turns))
            }
            (Exchange::Concurrent { up, down }, CutData::Concurrent(chains)) => {
                let chain = |end: usize, units: &'m [Unit]| Chain {
                    items: chains[end].list.of(units),
                    heard: chains[end].heard,
                };
                Data::Concurrent([chain(0, up), chain(1, down)])
            }
            (Exchange::Attempt { retries, refused }, CutData::Attempt(list)) => Data::Attempt {
                retries: list.of(retries),
                refused: *refused,
            },
            (Exchange::Datagrams(d), CutData::Packets(list)) => Data::Datagrams(Flow {
                packets: list.of(&d.packets),
                runs: [none(), none()],
            }),
            (Exchange::Datagrams(d), CutData::Runs(lists)) => Data::Datagrams(Flow {
                packets: Items::all(&[]),
                runs: [0, 1].map(|end| lists[end].of(&d.runs[end])),
            }),
            // The cut of another connection: nothing is left.
            _ => Data::Sequential(Items::all(&[])),
        }
    }

    /// Number of units of the client and of the server, as [`Exchange::units`].
    pub(crate) fn units(&self) -> [usize; 2] {
        match self.data() {
            Data::Sequential(turns) => [turns.len(); 2],
            Data::Concurrent(chains) => chains.map(|chain| chain.len()),
            Data::Attempt { retries, .. } => [retries.len() + 1, 0],
            Data::Datagrams(flow) => flow
                .count()
                .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        }
    }

    /// As [`Connection::overlap`].
    pub fn overlap(&self) -> Option<[u32; 2]> {
        self.cut.map_or(self.connection.overlap, |cut| cut.overlap)
    }

    /// Where new writes of an end begin.
    #[inline]
    pub fn writes(&self, end: usize) -> Items<'m, Write> {
        let whole = &self.connection.writes[end];
        match self.cut {
            None => Items::all(whole),
            Some(cut) => cut.writes[end].of(whole),
        }
    }

    /// The wait of its opening; `None` if none of its turns wait for other connections. The rest of a connection has begun, and waits no more.
    pub fn opening(&self) -> Option<Wait> {
        let first = self.connection.waits.first().copied();
        match self.cut {
            None => first,
            Some(_) => first.map(|_| Wait::default()),
        }
    }

    /// The wait of a later turn. Of the rest of a connection, only turns that remain whole wait, but for the one that is
    /// next: what is under way, or in the pause before it, waits no more.
    pub fn wait(&self, turn: u32) -> Option<Wait> {
        let waits = &self.connection.waits;
        let whole = match self.cut.map(|cut| &cut.data) {
            None => turn as usize,
            Some(_) if turn < 2 => return None,
            Some(CutData::Sequential(list)) => list.whole(turn as usize)?,
            Some(_) => return None,
        };
        let at = waits.binary_search_by_key(&whole, |w| w.turn as usize);
        Some(Wait {
            turn,
            ..*waits.get(at.ok()?)?
        })
    }
}
