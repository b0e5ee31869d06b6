//! Studies of hosts in a build without agents: they cannot run.

use std::marker::PhantomData;
use std::path::Path;

use swell_experiment::observe::Observations;
use swell_host::Rights;
use swell_study::file::bench::{Bench, Bencher};

/// Hosts for runs, of which there are none in this build.
pub struct Hosts<'r>(PhantomData<&'r Path>);

impl<'r> Hosts<'r> {
    /// Hosts created with these rights.
    pub fn new(_: &'r Rights, _: &'r Path) -> Hosts<'r> {
        Hosts(PhantomData)
    }
}

impl Bencher for Hosts<'_> {
    fn play(&self, _: &Bench, _: u64) -> Result<Observations, String> {
        Err("this program was built without agents (feature `agents`)".into())
    }
}
