//! Tests of whole worlds. That of memory is a program of its own, because it counts what is allocated.

mod answers;
mod chains;
mod crowd;
mod feed;
mod laws;
mod parking_lot;
mod paths;
mod phases;
mod ports;
mod properties;
mod reaped;
mod sessions;
mod shared_links;
