//! Directions, ends and sides: types of two values, which index arrays with a value for each.

use std::fmt::{self, Display, Formatter};
use std::ops::{Index, IndexMut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines a type of two values.
macro_rules! two {
    (
        $(#[$about:meta])* $name:ident:
        $(#[$about_first:meta])* $first:ident,
        $(#[$about_second:meta])* $second:ident;
        $opposite:ident, $is_second:ident
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $(#[$about_first])*
            #[default]
            $first,
            $(#[$about_second])*
            $second,
        }

        impl $name {
            /// Both, in the order of their indices.
            pub const BOTH: [$name; 2] = [$name::$first, $name::$second];

            /// The place in an array with a value for each: 0 or 1.
            #[inline]
            pub const fn index(self) -> usize {
                self as usize
            }

            /// The other one.
            #[inline]
            pub const fn $opposite(self) -> $name {
                match self {
                    $name::$first => $name::$second,
                    $name::$second => $name::$first,
                }
            }

            #[doc = concat!("`", stringify!($second), "` if true, else `", stringify!($first), "`.")]
            #[inline]
            pub const fn of($is_second: bool) -> $name {
                match $is_second {
                    true => $name::$second,
                    false => $name::$first,
                }
            }
        }

        impl<T> Index<$name> for [T; 2] {
            type Output = T;
            #[inline]
            fn index(&self, of: $name) -> &T {
                &self[of.index()]
            }
        }

        impl<T> IndexMut<$name> for [T; 2] {
            #[inline]
            fn index_mut(&mut self, of: $name) -> &mut T {
                &mut self[of.index()]
            }
        }
    };
}

two! {
    /// A direction across a link or along a path.
    Direction:
    /// Left to right; along a path from the clients to the servers.
    Up,
    /// Right to left; along a path towards the clients.
    Down;
    opposite, down
}

two! {
    /// An end of a connection or of a datagram flow.
    End:
    /// The end that opened it.
    Client,
    /// The end that accepted it.
    Server;
    other, server
}

two! {
    /// A side of the network: left or right of its links.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    Side:
    /// Where the clients are, if nothing else is said.
    Left,
    /// Where the servers are, if nothing else is said.
    Right;
    other, right
}

impl Direction {
    /// The name in tables and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

impl Display for Direction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_two_has_its_place() {
        let names = Direction::BOTH.map(Direction::name);
        assert_eq!(names, ["up", "down"]);
        for (i, direction) in Direction::BOTH.into_iter().enumerate() {
            assert_eq!((direction.index(), direction as usize), (i, i));
            assert_eq!(Direction::of(i == 1), direction);
            assert_eq!(direction.opposite().index(), 1 - i);
            assert_eq!(names[direction], direction.to_string());
        }
        let mut counts = [0, 0];
        counts[End::Server] += 1;
        counts[Side::Left] += 2;
        assert_eq!(counts, [2, 1]);
        assert_eq!(size_of::<[End; 2]>(), 2);
    }
}
