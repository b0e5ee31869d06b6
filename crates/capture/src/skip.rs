//! Reasons why a record yields no packet.

/// Why a record yielded no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Skip {
    /// A link type this crate does not decode.
    UnsupportedLink,
    /// The frame carries something other than IPv4 or IPv6.
    NotIp,
    /// The captured bytes end inside the link layer header.
    ShortLink,
    /// The captured bytes end inside the IP header.
    ShortIp,
    /// The IP header contradicts itself or the link layer.
    BadIp,
    /// The record itself is invalid: its interface was never described, or it claims more bytes than its block holds.
    BadRecord,
}

impl Skip {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Skip; 6] = [
        Skip::UnsupportedLink,
        Skip::NotIp,
        Skip::ShortLink,
        Skip::ShortIp,
        Skip::BadIp,
        Skip::BadRecord,
    ];

    /// The reason in words, for a table.
    pub const fn text(self) -> &'static str {
        match self {
            Skip::UnsupportedLink => "unsupported link type",
            Skip::NotIp => "not IP",
            Skip::ShortLink => "captured bytes end inside the link layer header",
            Skip::ShortIp => "captured bytes end inside the IP header",
            Skip::BadIp => "bad IP header",
            Skip::BadRecord => "bad capture record",
        }
    }
}
