//! Converts the transport settings of an experiment file to those of the endpoints.

use std::sync::Arc;

use swell_base::{Bytes, Dur};
use swell_tcp::{Config, Jitter};

use crate::file::{TcpProfile, TcpSettings};

/// The QUIC configuration for the settings in a file. Those for which [`is_quic`] is false have no effect.
pub(crate) fn quic(settings: &TcpSettings) -> Arc<Config> {
    Arc::new(with(Config::quic(), &for_quic(settings)))
}

/// Whether QUIC has all that is set.
pub(crate) fn is_quic(settings: &TcpSettings) -> bool {
    use swell_tcp::Algorithm::{Bbr, Cubic, NewReno};
    let algorithm = settings.congestion.unwrap_or(Cubic);
    *settings == for_quic(settings) && matches!(algorithm, Cubic | NewReno | Bbr)
}

/// The settings that TCP and QUIC share.
fn for_quic(settings: &TcpSettings) -> TcpSettings {
    TcpSettings {
        congestion: settings.congestion,
        initial_window: settings.initial_window,
        initial_ssthresh: settings.initial_ssthresh,
        mss: settings.mss,
        receive_window: settings.receive_window,
        jitter: settings.jitter,
        ..TcpSettings::default()
    }
}

/// The TCP configuration for the settings in a file.
pub(crate) fn tcp(settings: &TcpSettings) -> Arc<Config> {
    let profile = match settings.profile {
        TcpProfile::Linux => Config::linux(),
        TcpProfile::Classic => Config::classic(),
        TcpProfile::Ns2Era => Config::ns2_era(),
        TcpProfile::Ns2Modern => Config::ns2_modern(),
    };
    Arc::new(with(profile, settings))
}

/// A profile with what is set.
fn with(mut config: Config, settings: &TcpSettings) -> Config {
    set(&mut config.algorithm, settings.congestion);
    let bytes = |b: Bytes| u32::try_from(b.0).unwrap_or(u32::MAX);
    set(&mut config.initial_window, settings.initial_window);
    set(&mut config.mss, settings.mss.map(bytes));
    set(&mut config.recv_buffer, settings.receive_window.map(bytes));
    config.recv_tuning &= settings.receive_window.is_none();
    set(&mut config.recv_tuning, settings.receive_tuning);
    set(&mut config.packets, settings.packets);
    set(&mut config.handshake, settings.handshake);
    set(&mut config.min_rto, settings.min_rto);
    set(&mut config.tick, settings.tick);
    set(&mut config.delayed_ack, settings.delayed_ack);
    set(&mut config.ack_delay, settings.ack_delay);
    set(&mut config.sack, settings.sack);
    set(&mut config.nagle, settings.nagle);
    set(&mut config.ecn, settings.ecn);
    set(&mut config.vegas, settings.vegas);
    set(&mut config.limited_transmit, settings.limited_transmit);
    config.initial_ssthresh = settings.initial_ssthresh.or(config.initial_ssthresh);
    config.send_window = settings.send_window.or(config.send_window);
    if let Some(most) = settings.jitter {
        config.jitter = match most {
            Dur::ZERO => Jitter::Off,
            most => Jitter::UpTo(most),
        };
    }
    // RACK needs SACK (RFC 8985 section 3).
    config.rack_tlp &= config.sack;
    config
}

fn set<T>(to: &mut T, from: Option<T>) {
    if let Some(value) = from {
        *to = value;
    }
}

#[cfg(test)]
mod tests {
    use swell_tcp::{Algorithm, VegasConfig};

    use super::*;

    fn of(toml: &str) -> Config {
        let settings: TcpSettings = toml::from_str(toml).expect("settings");
        (*tcp(&settings)).clone()
    }

    #[test]
    fn every_name_in_the_schema_is_an_algorithm_of_its_own() {
        let names = &crate::file::schema()["$defs"]["CongestionControl"]["oneOf"];
        let names: Vec<&str> = names
            .as_array()
            .expect("an enum")
            .iter()
            .filter_map(|c| c["const"].as_str())
            .collect();
        assert_eq!(names.len(), 10);
        let mut seen = Vec::new();
        for name in names {
            let algorithm = of(&format!("congestion = '{name}'")).algorithm;
            let code = format!("{algorithm:?}").to_lowercase();
            assert_eq!(code, name.replace('+', "plus"), "the name in the code");
            assert!(!seen.contains(&algorithm), "{name}");
            seen.push(algorithm);
        }
    }

    #[test]
    fn profiles_are_those_of_the_endpoints() {
        assert_eq!(of(""), Config::linux());
        assert_eq!(of("profile = 'classic'"), Config::classic());
        assert_eq!(of("profile = 'ns2-era'"), Config::ns2_era());
        assert_eq!(of("profile = 'ns2-modern'"), Config::ns2_modern());
    }

    #[test]
    fn what_a_file_sets_differs_from_the_profile_and_nothing_else() {
        let got = of(r#"
            profile = "classic"
            congestion = "vegas"
            initial_window = 4
            initial_ssthresh = 64
            min_rto = "300ms"
            tick = "500ms"
            delayed_ack = true
            ack_delay = "200ms"
            nagle = true
            ecn = true
            limited_transmit = true
            mss = "1000B"
            receive_window = "64KiB"
            send_window = 40
            packets = true
            handshake = false
            receive_tuning = true
            vegas = { alpha = 2, beta = 4 }
            jitter = "2ms"
        "#);
        let want = Config {
            algorithm: Algorithm::Vegas,
            initial_window: 4,
            initial_ssthresh: Some(64),
            min_rto: swell_base::Dur::from_millis(300),
            tick: swell_base::Dur::from_millis(500),
            delayed_ack: true,
            ack_delay: swell_base::Dur::from_millis(200),
            nagle: true,
            ecn: true,
            limited_transmit: true,
            mss: 1000,
            recv_buffer: 65_536,
            send_window: Some(40),
            packets: true,
            handshake: false,
            recv_tuning: true,
            vegas: VegasConfig {
                alpha: 2,
                beta: 4,
                gamma: 1,
            },
            jitter: Jitter::UpTo(Dur::from_millis(2)),
            ..Config::classic()
        };
        assert_eq!(got, want);
        assert_eq!(of("jitter = '0s'").jitter, Jitter::Off);
        let plain = of("sack = false");
        assert!(!plain.sack && !plain.rack_tlp, "RACK needs SACK");
    }
}
