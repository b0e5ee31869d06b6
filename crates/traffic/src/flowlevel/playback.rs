//! The settings with which a model is played.

/// How to play a model, that is, generate traffic from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playback {
    /// Factor on the number of sessions and datagram sources.
    pub load: f64,
    /// Time compression: intervals are shorter than the model's by this factor. The number of sessions,
    /// and so the rate, stays the same. To carry the volume of each interval in the shorter time, set
    /// `load` to the same number (both are in section 4.1 of the paper, "Interval Duration").
    pub compression: f64,
    /// Factor on the bytes of transfers.
    pub sizes: f64,
    /// Factor on the gaps between the transfers of a session. Larger gaps mean fewer transfers, unless
    /// `load` is raised as well.
    pub gaps: f64,
    /// Duration of transfers, relative to that of the model's fastest clients. 0: the network is so much
    /// faster that durations do not matter. It decides which intervals a large file is expected to load.
    pub durations: f64,
    /// The first interval to play.
    pub first: usize,
    /// Whether to start again with interval `first` after the last one, endlessly.
    pub cycle: bool,
}

impl Default for Playback {
    /// The whole model, unchanged, once.
    fn default() -> Playback {
        Playback {
            load: 1.0,
            compression: 1.0,
            sizes: 1.0,
            gaps: 1.0,
            durations: 1.0,
            first: 0,
            cycle: false,
        }
    }
}
