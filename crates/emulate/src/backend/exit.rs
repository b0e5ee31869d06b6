//! How a client ended.

use std::process::ExitStatus;

use swell_base::Time;

/// The result of one run of a client.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// When it was started; world time.
    pub start: Time,
    /// When it ended or was killed; world time.
    pub end: Time,
    /// Its exit status; `None` if the emulated run ended first.
    pub status: Option<ExitStatus>,
    /// It exceeded its time limit and was killed.
    pub timed_out: bool,
}
