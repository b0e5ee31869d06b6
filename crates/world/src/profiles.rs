//! TCP configurations of a workload's connections. Connections with the same settings share one.

use std::collections::BTreeMap;
use std::sync::Arc;

use swell_base::End;
use swell_tcp::Config;
use swell_workload::{Open, Wire, WireEnd};

/// Settings that can differ between connections: receive window, timestamps, SACK, IPv6, settings of the end, and the
/// initial window of a connection that is already under way.
type Key = (
    u32,
    Option<bool>,
    Option<bool>,
    bool,
    (u16, Option<u8>, u8),
    Option<u32>,
);

/// The TCP profile of a workload and the variants of it created so far.
pub(crate) struct Profiles {
    profile: Arc<Config>,
    variants: BTreeMap<Key, Arc<Config>>,
}

impl Profiles {
    pub fn new(profile: Arc<Config>) -> Profiles {
        Profiles {
            profile,
            variants: BTreeMap::new(),
        }
    }

    /// The configuration of an end of a connection.
    pub fn of(&mut self, open: &Open, end: End) -> Arc<Config> {
        let profile = &self.profile;
        // 0 means that the window is not capped.
        let cap = [open.client_window, open.server_window][end];
        let wire = &open.wire;
        let capped = cap != 0 && cap < profile.recv_buffer;
        let begun = open.under_way.map(|windows| windows[end]);
        if !capped && *wire == Wire::default() && begun.is_none() {
            return Arc::clone(profile);
        }
        let window = if capped { cap } else { profile.recv_buffer };
        let e = wire.ends[end];
        let own = (e.mss, e.quick_acks, e.ack_every);
        let key = (window, wire.timestamps, wire.sack, wire.ipv6, own, begun);
        let variant = self.variants.entry(key);
        Arc::clone(variant.or_insert_with(|| {
            let mut config = variant_of(profile, window, wire, e);
            if let Some(segments) = begun {
                config.handshake = false;
                config.initial_window = segments;
                config.initial_ssthresh = Some(segments);
            }
            Arc::new(config)
        }))
    }
}

fn variant_of(profile: &Config, window: u32, wire: &Wire, end: WireEnd) -> Config {
    // The user chooses the profile. A host that was observed without a feature does not get it.
    let sack = wire.sack != Some(false);
    let mut config = Config {
        sack: profile.sack && sack,
        dsack: profile.dsack && sack,
        frto: profile.frto && sack,
        rack_tlp: profile.rack_tlp && sack,
        recv_buffer: window,
        // A window or ACK behaviour that was measured is not tuned.
        recv_tuning: profile.recv_tuning
            && window == profile.recv_buffer
            && end.quick_acks.is_none(),
        ip_header: if wire.ipv6 { 40 } else { profile.ip_header },
        timestamps: wire.timestamps.unwrap_or(profile.timestamps),
        ..profile.clone()
    };
    if end.mss > 0 {
        config.mss = u32::from(end.mss);
    }
    if let Some(quick) = end.quick_acks {
        config.delayed_ack = quick < u8::MAX;
        config.quick_acks = quick;
    }
    if end.ack_every > 0 {
        config.ack_every = end.ack_every;
    }
    config
}
