//! The traffic model: what it is, its file, drawing from it.

mod model;

pub use model::{
    Class, Connection, Datagrams, Exchange, Group, Load, Model, Parameters, Path, Provenance,
    Session, Totals, Turn,
};
