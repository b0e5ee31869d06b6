//! The layout of a bridge: between which interfaces frames cross which links.

use std::collections::VecDeque;

use swell_world::Hop;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// Number of the link.
    pub link: usize,
    /// Its right end; otherwise its left one.
    pub right: bool,
}

/// Links between two nodes, with nothing in between that a frame could go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The nodes at its left and right end.
    pub nodes: [usize; 2],
    /// Its links, from the left end to the right one.
    pub hops: Vec<Hop>,
}

/// Interfaces at nodes, and the spans between nodes: a tree. Each node has a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The node of each interface.
    pub interfaces: Vec<usize>,
    /// The spans.
    pub spans: Vec<Span>,
}

/// Why interfaces cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// This link closes a loop: frames to everybody would go round in it forever.
    Loop(usize),
    /// No path leads from the first interface to the one with this number.
    Apart(usize),
    /// All interfaces are in one place, so no frame would cross a link.
    Together,
}

impl LinkEnd {
    /// The end of a hop where packets from the clients enter, or else where they leave.
    fn of(hop: &Hop, entry: bool) -> LinkEnd {
        LinkEnd {
            link: hop.link,
            right: hop.reversed == entry,
        }
    }

    fn number(self) -> usize {
        2 * self.link + usize::from(self.right)
    }
}

/// The first and the last end of a path; `None` if it has no hop.
pub fn ends(path: &[Hop]) -> Option<[LinkEnd; 2]> {
    Some([
        LinkEnd::of(path.first()?, true),
        LinkEnd::of(path.last()?, false),
    ])
}

/// Sets of link ends that meet.
struct Places(Vec<usize>);

impl Places {
    fn of(&self, end: LinkEnd) -> usize {
        let mut place = end.number();
        while self.0[place] != place {
            place = self.0[place];
        }
        place
    }

    fn meet(&mut self, a: LinkEnd, b: LinkEnd) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a] = b;
    }
}

impl Layout {
    /// Places interfaces at ends of links. The links of a path meet in its order; `links` is their number.
    ///
    /// # Errors
    /// If the links form a loop, interfaces are not connected, or all of them are in one place.
    pub fn new(
        interfaces: &[LinkEnd],
        links: usize,
        paths: &[Vec<Hop>],
    ) -> Result<Layout, LayoutError> {
        let mut places = Places((0..2 * links).collect());
        for pair in paths.iter().flat_map(|path| path.windows(2)) {
            places.meet(LinkEnd::of(&pair[0], false), LinkEnd::of(&pair[1], true));
        }
        let both = |link| [false, true].map(|right| places.of(LinkEnd { link, right }));
        let mut graph = Graph {
            nodes: vec![Vec::new(); 2 * links],
            spans: Vec::new(),
        };
        for link in 0..links {
            graph.add(Span {
                nodes: both(link),
                hops: vec![Hop {
                    link,
                    reversed: false,
                }],
            });
        }
        let seats: Vec<usize> = interfaces.iter().map(|&end| places.of(end)).collect();
        let Some(&first) = seats.first() else {
            return Err(LayoutError::Together);
        };
        let reached = graph.reach(first)?;
        if let Some(apart) = seats.iter().position(|&seat| !reached.contains(&seat)) {
            return Err(LayoutError::Apart(apart));
        }
        if seats.iter().all(|&seat| seat == first) {
            return Err(LayoutError::Together);
        }
        graph.simplify(&reached, &seats);
        Ok(graph.layout(&seats))
    }

    /// Number of nodes.
    pub(crate) fn nodes(&self) -> usize {
        let all = self.spans.iter().flat_map(|s| s.nodes);
        all.chain(self.interfaces.iter().copied())
            .max()
            .map_or(0, |last| last + 1)
    }
}

/// Nodes, each with the numbers of its spans. A removed span is `None`.
struct Graph {
    nodes: Vec<Vec<usize>>,
    spans: Vec<Option<Span>>,
}

impl Graph {
    fn add(&mut self, span: Span) {
        for node in span.nodes {
            self.nodes[node].push(self.spans.len());
        }
        self.spans.push(Some(span));
    }

    fn remove(&mut self, number: usize) -> Option<Span> {
        let span = self.spans[number].take()?;
        for node in span.nodes {
            self.nodes[node].retain(|&s| s != number);
        }
        Some(span)
    }

    /// The nodes that can be reached from one, in order of their distance.
    fn reach(&self, from: usize) -> Result<Vec<usize>, LayoutError> {
        let mut reached = vec![from];
        let mut left = VecDeque::from([(from, None)]);
        while let Some((node, by)) = left.pop_front() {
            for &number in self.nodes[node].iter().filter(|&&s| Some(s) != by) {
                let Some(span) = &self.spans[number] else {
                    continue;
                };
                let other = span.nodes[usize::from(span.nodes[0] == node)];
                if reached.contains(&other) {
                    return Err(LayoutError::Loop(span.hops[0].link));
                }
                reached.push(other);
                left.push_back((other, Some(number)));
            }
        }
        Ok(reached)
    }

    /// Removes what no frame would go to, and joins two spans that meet where nothing else is, so that they are one
    /// path of the world.
    fn simplify(&mut self, reached: &[usize], seats: &[usize]) {
        for number in 0..self.spans.len() {
            let there = |s: &Span| reached.contains(&s.nodes[0]);
            if !self.spans[number].as_ref().is_some_and(there) {
                self.remove(number);
            }
        }
        while let Some((node, spans)) = (reached.iter())
            .map(|&node| (node, self.nodes[node].clone()))
            .find(|(node, spans)| !seats.contains(node) && (1..3).contains(&spans.len()))
        {
            let removed: Vec<Span> = spans.iter().filter_map(|&s| self.remove(s)).collect();
            if let [a, b] = &removed[..] {
                // The first of them keeps its direction.
                let (a, b) = match a.nodes[1] == node {
                    true => (a.clone(), b.facing(node, false)),
                    false => (b.facing(node, true), a.clone()),
                };
                self.add(Span {
                    nodes: [a.nodes[0], b.nodes[1]],
                    hops: [a.hops, b.hops].concat(),
                });
            }
        }
    }

    /// With nodes numbered in the order of interfaces and spans.
    fn layout(self, seats: &[usize]) -> Layout {
        let mut numbers: Vec<usize> = Vec::new();
        let mut number = |node: usize| {
            let known = numbers.iter().position(|&n| n == node);
            known.unwrap_or_else(|| {
                numbers.push(node);
                numbers.len() - 1
            })
        };
        let interfaces = seats.iter().map(|&seat| number(seat)).collect();
        let spans = self.spans.into_iter().flatten().map(|span| Span {
            nodes: span.nodes.map(&mut number),
            ..span
        });
        let spans = spans.collect();
        Layout { interfaces, spans }
    }
}

impl Span {
    /// The span turned so that `node` is at its right end, or else at its left one.
    fn facing(&self, node: usize, at_right: bool) -> Span {
        if self.nodes[usize::from(at_right)] == node {
            return self.clone();
        }
        let turned = self.hops.iter().rev().map(|hop| Hop {
            reversed: !hop.reversed,
            ..*hop
        });
        Span {
            nodes: [self.nodes[1], self.nodes[0]],
            hops: turned.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(link: usize) -> Hop {
        Hop {
            link,
            reversed: false,
        }
    }

    fn back(link: usize) -> Hop {
        Hop {
            link,
            reversed: true,
        }
    }

    fn end(link: usize, right: bool) -> LinkEnd {
        LinkEnd { link, right }
    }

    fn span(nodes: [usize; 2], hops: &[Hop]) -> Span {
        Span {
            nodes,
            hops: hops.to_vec(),
        }
    }

    #[test]
    fn several_interfaces_share_the_ends_of_one_link() {
        let seats = [false, false, true].map(|right| end(0, right));
        let layout = Layout::new(&seats, 1, &[vec![hop(0)]]).unwrap();
        assert_eq!(layout.interfaces, [0, 0, 1]);
        assert_eq!(layout.spans, [span([0, 1], &[hop(0)])]);
        assert_eq!(layout.nodes(), 2);
    }

    #[test]
    fn links_that_meet_where_nobody_is_are_one_span() {
        let path = vec![hop(0), back(1), hop(2)];
        let outer = [end(0, false), end(2, true)];
        assert_eq!(ends(&path), Some(outer));
        let layout = Layout::new(&outer, 3, std::slice::from_ref(&path)).unwrap();
        assert_eq!(layout.spans, [span([0, 1], &path)]);
        // Named from the other end, the path is the same turned round.
        let other = Layout::new(&[outer[1], outer[0]], 3, &[path]).unwrap();
        let [only] = &other.spans[..] else {
            panic!("{other:?}");
        };
        let turned = only.facing(0, false);
        assert_eq!(turned.hops, [back(2), hop(1), back(0)]);
    }

    #[test]
    fn an_interface_between_two_links_divides_them() {
        let path = vec![hop(0), hop(1)];
        let seats = [end(0, false), end(1, true), end(0, true)];
        let layout = Layout::new(&seats, 2, &[path]).unwrap();
        assert_eq!(layout.interfaces, [0, 1, 2]);
        assert_eq!(
            layout.spans,
            [span([0, 2], &[hop(0)]), span([2, 1], &[hop(1)])]
        );
    }

    #[test]
    fn a_star_keeps_its_centre_and_loses_arms_without_interfaces() {
        // Four links whose right ends meet.
        let paths = [1, 2, 3].map(|k| vec![hop(0), back(k)]);
        let seats = [end(0, false), end(1, false), end(2, false)];
        let layout = Layout::new(&seats, 4, &paths).unwrap();
        assert_eq!((layout.spans.len(), layout.nodes()), (3, 4));
        assert!(layout.spans.iter().all(|s| s.nodes[1] == 3));
        // With two interfaces the centre is no longer needed.
        let two = Layout::new(&seats[..2], 4, &paths).unwrap();
        assert_eq!(two.spans, [span([0, 1], &[hop(0), back(1)])]);
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        let ring = [vec![hop(0), hop(1)], vec![hop(1), hop(0)]];
        let seats = [end(0, false), end(1, false)];
        let error = Layout::new(&seats, 2, &ring).unwrap_err();
        assert!(matches!(error, LayoutError::Loop(_)), "{error:?}");
        let apart = [end(0, false), end(0, true), end(1, true)];
        let paths = [vec![hop(0)], vec![hop(1)]];
        assert_eq!(
            Layout::new(&apart, 2, &paths).unwrap_err(),
            LayoutError::Apart(2)
        );
        assert_eq!(
            Layout::new(&[end(0, true); 2], 1, &[]).unwrap_err(),
            LayoutError::Together
        );
        assert_eq!(Layout::new(&[], 1, &[]).unwrap_err(), LayoutError::Together);
        assert_eq!(ends(&[]), None);
    }
}
