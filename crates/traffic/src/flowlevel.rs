//! The flow-level model of Harpoon (J. Sommers & P. Barford, "Self-configuring network traffic
//! generation", IMC 2004): what flow records alone can tell about traffic, ready to be played.
//!
//! A [`Configurator`] takes flow [`Record`]s, one by one, and gives a [`FlowModel`]: how large files
//! are, how long a client waits from one connection to the next, how popular sources and destinations
//! are by rank, and how many sessions must be active in each interval to carry its bytes; and which UDP
//! sources send at a constant rate, periodically, at exponential intervals, or otherwise. Addresses
//! never enter the model. A [`Player`] says what to
//! transfer next; [`FlowModel::imitate`] plays the arithmetic of a model without a network.
//!
//! Its file is versioned JSON ([`FlowModel::from_slice`], [`FlowModel::to_json`]); models of pieces of a
//! trace merge ([`FlowModel::merge`]). Records of sampled packets give a model of all of them, with what is
//! known and how well ([`Sampled`]).
//!
//! Profile [`Profile::Fixed`] does what the paper means. [`Profile::Harpoon`] repeats the arithmetic of
//! the released program, for comparison, and its configurations are read and written
//! ([`FlowModel::from_harpoon`], [`FlowModel::to_harpoon`]).
//!
//! Not modelled: dependence between sizes, gaps and hosts (each law is drawn from independently), round
//! trips and rates of TCP (left to the network that the traffic is played on).

mod configure;
mod file;
mod histogram;
mod law;
mod merge;
mod model;
mod play;
mod record;
mod tuning;
mod xml;

pub use configure::{Configurator, ConfigureError, Options, Order};
pub use file::{FORMAT, VERSION};
pub use histogram::{Bucket, Histogram};
pub use law::{Law, Sizes, Stratified};
pub use merge::MergeError;
pub use model::{
    Estimate, FlowModel, FlowTotals, Interval, LARGE, Popularity, Profile, Sampled, TcpSessions,
    UdpKind, UdpSources,
};
pub use play::{
    Burst, Due, Exchange, Pacer, Plan, PlanError, Playback, Player, Share, Transfer, UdpSource,
};
pub use record::{Direction, Record};
pub use tuning::Played;
pub use xml::XmlError;

#[cfg(test)]
mod tests;
