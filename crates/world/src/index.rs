//! Numbers of links.

/// Number of a shared link's queue or of an access link: see [`crate::links`]. `NONE`: no access link.
pub(crate) type LinkIndex = u32;
pub(crate) const NONE: LinkIndex = u32::MAX;

/// Access links are numbered from here; queues have lower numbers.
pub(crate) const ACCESS: LinkIndex = 1 << 16;
