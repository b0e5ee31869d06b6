//! Disciplines of a file on a link.

use swell_base::{QueueLimit, Rate};
use swell_path::{
    Classifier, CoDelConfig, Discipline, DrrConfig, FqCoDelConfig, PieConfig, PieDelay,
    PriorityConfig, RedAdaptive, RedConfig, RedMeasure, RedSpacing, RedThresholds, RedVictim,
    RedWeight, RedWeightRule,
};

use crate::file::qdisc::QdiscSpec;

fn of(toml: &str) -> Discipline {
    let table: toml::Table = toml.parse().expect("TOML");
    let spec: QdiscSpec = table["q"].clone().try_into().expect("a discipline");
    spec.0.discipline(Rate::from_bps(8_000_000))
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
    assert_eq!(of("q = 'choke'"), Discipline::Choke(RedConfig::classic()));
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
    let Discipline::Choke(choke) =
        of("q = { kind = 'choke', min = '3ms', max = '9kB', ecn = true }")
    else {
        panic!("no CHOKe")
    };
    let thresholds = RedThresholds::Packets {
        min: 6.0,
        max: 18.0,
    };
    assert!(choke.ecn && choke.thresholds == thresholds);
    let Discipline::CoDel(codel) = of("q = { kind = 'codel', ecn = true }") else {
        panic!("no CoDel")
    };
    assert!(codel.ecn && codel.target == CoDelConfig::default().target);
    let Discipline::Pie(pie) = of("q = { kind = 'pie', delay = 'departure-rate' }") else {
        panic!("no PIE")
    };
    assert_eq!(pie.delay, PieDelay::DepartureRate);
}
