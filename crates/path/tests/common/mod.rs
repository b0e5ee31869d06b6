//! Disciplines with random parameters, including extreme ones.

use swell_base::{Bytes, Dur, FlowId, QueueLimit, Stream};
use swell_path::{
    Classifier, CoDelConfig, Discipline, DrrConfig, FqCoDelConfig, PieConfig, PieDelay,
    PriorityConfig, RedAdaptive, RedConfig, RedDialect, RedMeasure, RedSpacing, RedThresholds,
    RedVictim, RedWeight, RedWeightRule,
};

pub fn random_limit(rng: &mut Stream) -> QueueLimit {
    match rng.below(4) {
        0 => QueueLimit::Packets(rng.below(30)),
        1 => QueueLimit::Bytes(Bytes(rng.below(30_000))),
        2 => QueueLimit::Time(Dur::from_micros(rng.below(20_000))),
        _ => QueueLimit::Packets(u64::MAX),
    }
}

pub fn random_discipline(rng: &mut Stream) -> Discipline {
    match rng.below(8) {
        0 => Discipline::Fifo,
        1 => Discipline::Red(red(rng)),
        7 => Discipline::Choke(red(rng)),
        2 => Discipline::Priority(PriorityConfig {
            classifier: classifier(rng),
            bands: rng.below(5) as u16,
            limits: (0..rng.below(4)).map(|_| random_limit(rng)).collect(),
        }),
        3 => Discipline::Drr(DrrConfig {
            classifier: classifier(rng),
            queues: rng.below(16) as u16,
            quantum: rng.below(3000) as u32,
            quanta: (0..rng.below(4)).map(|_| rng.below(3000) as u32).collect(),
        }),
        4 => Discipline::CoDel(codel(rng)),
        5 => {
            let (flows, quantum) = (rng.below(16) as u32, Bytes(rng.below(3000)));
            let drop_batch = rng.below(8) as u32;
            let codel = codel(rng);
            Discipline::FqCoDel(FqCoDelConfig {
                flows,
                quantum,
                drop_batch,
                target: codel.target,
                interval: codel.interval,
                mtu: codel.mtu,
                ecn: codel.ecn,
            })
        }
        _ => Discipline::Pie(PieConfig {
            target: Dur::from_micros(rng.below(20_000)),
            update: Dur::from_micros(rng.below(20_000) + 100),
            max_burst: Dur::from_millis(rng.below(150)),
            delay: [PieDelay::Timestamps, PieDelay::DepartureRate][rng.below(2) as usize],
            derandomize: rng.chance(0.5),
            capped: rng.chance(0.5),
            ecn: rng.chance(0.5),
            ..PieConfig::default()
        }),
    }
}

fn classifier(rng: &mut Stream) -> Classifier {
    match rng.below(3) {
        0 => Classifier::Tag {
            foreground: rng.below(3) as u16,
            background: rng.below(3) as u16,
        },
        1 => Classifier::FlowsFrom(vec![(FlowId(3), 2), (FlowId(8), 1)]),
        _ => Classifier::Hash,
    }
}

fn codel(rng: &mut Stream) -> CoDelConfig {
    CoDelConfig {
        target: Dur::from_micros(rng.below(5_000)),
        interval: Dur::from_micros(rng.below(50_000)),
        ecn: rng.chance(0.5),
        ..CoDelConfig::default()
    }
}

fn red(rng: &mut Stream) -> RedConfig {
    let min = rng.uniform() * 10.0;
    RedConfig {
        thresholds: match rng.below(3) {
            0 => RedThresholds::Delay(Dur::from_micros(rng.below(5_000))),
            _ => RedThresholds::Packets {
                min,
                max: min + rng.uniform() * 10.0,
            },
        },
        max_p: rng.uniform(),
        weight: match rng.below(3) {
            0 => RedWeight::Rule(RedWeightRule::OneSecond),
            1 => RedWeight::Rule(RedWeightRule::TenRoundTrips),
            _ => RedWeight::Fixed(rng.uniform()),
        },
        mean_packet: rng.below(1500) as u16,
        measure: [RedMeasure::Packets, RedMeasure::Bytes][rng.below(2) as usize],
        by_size: rng.chance(0.5),
        spacing: [RedSpacing::Geometric, RedSpacing::Uniform, RedSpacing::Wait]
            [rng.below(3) as usize],
        gentle: rng.chance(0.5),
        adaptive: rng.chance(0.5).then(RedAdaptive::default),
        ecn: rng.chance(0.5),
        mark_below: rng.chance(0.5).then(|| rng.uniform()),
        victim: [RedVictim::Arriving, RedVictim::Front, RedVictim::Random][rng.below(3) as usize],
        dialect: [RedDialect::Paper, RedDialect::Ns2][rng.below(2) as usize],
    }
}
