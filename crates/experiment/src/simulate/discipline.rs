//! Converts a queueing discipline of an experiment file to that of a link.

use swell_base::{Bytes, QueueLimit, Rate};
use swell_path::{Classifier, Discipline, DrrConfig, PriorityConfig, RedConfig, RedThresholds};

use crate::file::qdisc::{Drr, DrrClasses, Priority, Qdisc, Red, RedSet};

/// The discipline that `qdisc` describes, on a link of `rate`. Limits in BDP have already been resolved.
pub(super) fn discipline(qdisc: &Qdisc, rate: Rate) -> Discipline {
    match qdisc {
        Qdisc::Fifo => Discipline::Fifo,
        Qdisc::Red(r) => Discipline::Red(red(r, rate)),
        Qdisc::Priority(p) => Discipline::Priority(priority(p)),
        Qdisc::Drr(d) => Discipline::Drr(drr(d)),
        Qdisc::Codel(c) => Discipline::CoDel(*c),
        Qdisc::FqCodel(f) => Discipline::FqCoDel(*f),
        Qdisc::Pie(p) => Discipline::Pie(*p),
    }
}

fn priority(p: &Priority) -> PriorityConfig {
    PriorityConfig {
        classifier: Classifier::Tag {
            foreground: count(p.foreground),
            background: count(p.background),
        },
        bands: count(p.bands),
        limits: p.limits.clone(),
    }
}

fn drr(d: &Drr) -> DrrConfig {
    let (classifier, queues) = match d.by {
        DrrClasses::Flow => (Classifier::Hash, count(d.queues)),
        DrrClasses::Traffic => {
            let by = Classifier::Tag {
                foreground: 0,
                background: 1,
            };
            (by, 2)
        }
    };
    DrrConfig {
        classifier,
        queues,
        quantum: large(d.quantum),
        quanta: d.quanta.iter().copied().map(large).collect(),
    }
}

fn red(r: &Red, rate: Rate) -> RedConfig {
    let set = match r.set {
        RedSet::Classic => RedConfig::classic(),
        RedSet::Adaptive => RedConfig::adaptive(),
        RedSet::Ns2Era => RedConfig::ns2_era(),
        RedSet::Ns2Modern => RedConfig::ns2_modern(),
    };
    let mean_packet = r.mean_packet.map_or(set.mean_packet, small);
    let packets = |limit| packets(limit, rate, f64::from(mean_packet.max(1)));
    RedConfig {
        thresholds: match (r.min, r.max, r.target_delay) {
            (Some(min), Some(max), _) => RedThresholds::Packets {
                min: packets(min),
                max: packets(max),
            },
            (_, _, Some(delay)) => RedThresholds::Delay(delay),
            _ => set.thresholds,
        },
        max_p: r.max_p.unwrap_or(set.max_p),
        weight: r.weight.unwrap_or(set.weight),
        mean_packet,
        measure: r.measure.unwrap_or(set.measure),
        by_size: r.by_size.unwrap_or(set.by_size),
        spacing: r.spacing.unwrap_or(set.spacing),
        gentle: r.gentle.unwrap_or(set.gentle),
        adaptive: r.adaptive.or(set.adaptive),
        ecn: r.ecn,
        mark_below: r.mark_below.or(set.mark_below),
        victim: r.victim.unwrap_or(set.victim),
        dialect: set.dialect,
    }
}

/// A threshold in packets of `mean` bytes, on a link of `rate`.
fn packets(limit: QueueLimit, rate: Rate, mean: f64) -> f64 {
    match limit {
        QueueLimit::Packets(n) => n as f64,
        QueueLimit::Bytes(b) => b.0 as f64 / mean,
        QueueLimit::Time(t) => rate.carried_in(t).0 as f64 / mean,
        // Unreachable: the plan has converted these to bytes, because the RTT is not known here.
        QueueLimit::Bdp(_) => f64::INFINITY,
    }
}

// The following conversions cannot saturate, because the check of the file has bounded the values.

fn count(n: u32) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

fn small(b: Bytes) -> u16 {
    u16::try_from(b.0).unwrap_or(u16::MAX)
}

fn large(b: Bytes) -> u32 {
    u32::try_from(b.0).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use swell_path::{
        CoDelConfig, FqCoDelConfig, PieConfig, PieDelay, RedAdaptive, RedMeasure, RedSpacing,
        RedVictim, RedWeight, RedWeightRule,
    };

    use crate::file::qdisc::QdiscSpec;

    fn of(toml: &str) -> Discipline {
        let table: toml::Table = toml.parse().expect("TOML");
        let spec: QdiscSpec = table["q"].clone().try_into().expect("a discipline");
        discipline(&spec.0, Rate::from_bps(8_000_000))
    }

    #[test]
    fn a_name_alone_has_the_documented_defaults() {
        assert_eq!(of("q = 'fifo'"), Discipline::Fifo);
        assert_eq!(of("q = 'red'"), Discipline::Red(RedConfig::classic()));
        assert_eq!(
            of("q = 'priority'"),
            Discipline::Priority(PriorityConfig::default())
        );
        assert_eq!(of("q = 'drr'"), Discipline::Drr(DrrConfig::default()));
        assert_eq!(of("q = 'codel'"), Discipline::CoDel(CoDelConfig::default()));
        assert_eq!(
            of("q = 'fq-codel'"),
            Discipline::FqCoDel(FqCoDelConfig::default())
        );
        assert_eq!(of("q = 'pie'"), Discipline::Pie(PieConfig::default()));
        for (name, set) in [
            ("classic", RedConfig::classic()),
            ("adaptive", RedConfig::adaptive()),
            ("ns2-era", RedConfig::ns2_era()),
            ("ns2-modern", RedConfig::ns2_modern()),
        ] {
            let text = format!("q = {{ kind = 'red', set = '{name}' }}");
            assert_eq!(of(&text), Discipline::Red(set), "{name}");
        }
        assert_eq!(
            of("q = { kind = 'red', adaptive = {} }"),
            Discipline::Red(RedConfig {
                adaptive: Some(RedAdaptive::default()),
                ..RedConfig::classic()
            })
        );
    }

    #[test]
    fn thresholds_have_any_unit_that_a_limit_has() {
        let thresholds = |text: &str| match of(&format!("q = {{ kind = 'red', {text} }}")) {
            Discipline::Red(r) => r.thresholds,
            other => panic!("{other:?}"),
        };
        let packets = |min, max| RedThresholds::Packets { min, max };
        assert_eq!(
            thresholds("min = '10pkt', max = '40pkt'"),
            packets(10.0, 40.0)
        );
        assert_eq!(
            thresholds("min = '5kB', max = '20kB', mean_packet = '1kB'"),
            packets(5.0, 20.0)
        );
        // 8 Mbit/s is 1000 bytes per millisecond.
        assert_eq!(
            thresholds("min = '5ms', max = '20ms', mean_packet = '1kB'"),
            packets(5.0, 20.0)
        );
        assert_eq!(
            thresholds("target_delay = '5ms'"),
            RedThresholds::Delay(swell_base::Dur::from_millis(5))
        );
    }

    #[test]
    fn parameters_arrive_where_they_belong() {
        let red = of(
            "q = { kind = 'red', set = 'ns2-era', max_p = 0.05, weight = 'one-second', \
             measure = 'bytes', by_size = true, spacing = 'geometric', gentle = true, ecn = true, \
             mark_below = 0.3, victim = 'random' }",
        );
        assert_eq!(
            red,
            Discipline::Red(RedConfig {
                max_p: 0.05,
                weight: RedWeight::Rule(RedWeightRule::OneSecond),
                measure: RedMeasure::Bytes,
                by_size: true,
                spacing: RedSpacing::Geometric,
                gentle: true,
                ecn: true,
                mark_below: Some(0.3),
                victim: RedVictim::Random,
                ..RedConfig::ns2_era()
            })
        );
        let Discipline::Red(fixed) = of("q = { kind = 'red', weight = 0.01 }") else {
            panic!("no RED")
        };
        assert_eq!(fixed.weight, RedWeight::Fixed(0.01));
        let filler = of("q = { kind = 'drr', by = 'traffic', quanta = ['1500B', '150B'] }");
        assert_eq!(
            filler,
            Discipline::Drr(DrrConfig {
                classifier: Classifier::Tag {
                    foreground: 0,
                    background: 1
                },
                queues: 2,
                quantum: 1500,
                quanta: vec![1500, 150],
            })
        );
        let bands = of(
            "q = { kind = 'priority', bands = 3, foreground = 2, background = 0, limits = ['9pkt'] }",
        );
        assert_eq!(
            bands,
            Discipline::Priority(PriorityConfig {
                classifier: Classifier::Tag {
                    foreground: 2,
                    background: 0
                },
                bands: 3,
                limits: vec![QueueLimit::Packets(9)],
            })
        );
        let Discipline::CoDel(codel) = of("q = { kind = 'codel', ecn = true }") else {
            panic!("no CoDel")
        };
        assert!(codel.ecn && codel.target == CoDelConfig::default().target);
        let Discipline::Pie(pie) = of("q = { kind = 'pie', delay = 'departure-rate' }") else {
            panic!("no PIE")
        };
        assert_eq!(pie.delay, PieDelay::DepartureRate);
    }
}
