//! The seeds of the fuzz targets. They are generated here, kept in the repository, and run through the targets
//! together with mutations.

use crate::build::*;
use crate::compressed::{gzip, xz, zstd};
use crate::targets;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use swell_base::Stream;
use swell_capture::LinkType;

/// Number of mutations of each seed that the tests try.
const MUTATIONS: u64 = 100;

type Seeds = BTreeMap<&'static str, Vec<u8>>;
type Target = (&'static str, fn(&[u8]), fn() -> Seeds);

const TARGETS: [Target; 4] = [
    ("reader", targets::reader, reader_seeds),
    ("dissector", targets::dissector, dissector_seeds),
    ("options", targets::options, option_seeds),
    ("flows", targets::flows, crate::flows::seeds::seeds),
];

fn reader_seeds() -> Seeds {
    let frames = web_frames();
    let first = &frames[0];
    let len = first.len() as u32;
    let mut seeds = Seeds::new();
    for (name, order, magic) in [
        ("pcap-le-us", Order::Little, MICROS),
        ("pcap-be-us", Order::Big, MICROS),
        ("pcap-le-ns", Order::Little, NANOS),
        ("pcap-be-ns", Order::Big, NANOS),
    ] {
        let mut file = pcap_header(order, magic, 4, 96, 1);
        file.extend(pcap_record(order, [1, 999, len, 1500], first));
        file.extend(pcap_record(order, [2, 1, len, len], first));
        seeds.insert(name, file);
    }
    let mut old = pcap_header(Order::Big, MICROS, 2, 96, 1);
    old.extend(pcap_record(Order::Big, [1, 1, 1500, len], first));
    seeds.insert("pcap-v2.2", old);
    let mut long_records = pcap_header(Order::Little, 0xa1b2_cd34, 4, 96, 1);
    long_records.extend(pcap_record(Order::Little, [1, 1, len, len], &[0; 8]));
    long_records.extend(first);
    seeds.insert("pcap-long-records", long_records);
    seeds.insert("snoop", snoop(&frames[..2]));
    for (name, order) in [("pcapng-le", Order::Little), ("pcapng-be", Order::Big)] {
        let mut file = section(order);
        file.extend(interface(order, 1, 96, &[(9, &[9]), (14, &order.u64(10))]));
        file.extend(interface(order, 101, 0, &[(9, &[0x94])]));
        file.extend(enhanced(order, 0, 1_000_000_007, first));
        file.extend(obsolete(order, 1, 1 << 21, &v6(17, &udp(b"x"))));
        file.extend(simple(order, len, first));
        file.extend(block(order, 4, &[0; 4]));
        file.extend(section(Order::Little));
        file.extend(interface(Order::Little, 113, 0, &[]));
        seeds.insert(name, file);
    }
    let plain = pcap(1, &frames);
    seeds.insert("pcap-gz", gzip(&plain));
    seeds.insert("pcap-zst", zstd(&plain));
    seeds.insert("pcap-xz", xz(&plain));
    seeds.insert("not-a-capture", b"time,bytes\n1,2\n".to_vec());
    seeds
}

fn dissector_seeds() -> Seeds {
    let udp4 = v4(17, &udp(b"hello"));
    let udp6 = v6(17, &udp(b"hello"));
    let mut chain = vec![44, 0, 1, 4, 0, 0, 0, 0];
    chain.extend([17, 0, 0, 1, 0, 0, 0, 9]);
    chain.extend(udp(b"hello"));
    let frames: [(&'static str, LinkType, Vec<u8>); 16] = [
        ("tcp", LinkType::ETHERNET, web_frames().remove(0)),
        ("tcp-sack", LinkType::ETHERNET, web_frames().remove(4)),
        ("udp6", LinkType::ETHERNET, ethernet(0x86dd, &udp6)),
        (
            "extensions",
            LinkType::ETHERNET,
            ethernet(0x86dd, &v6(0, &chain)),
        ),
        (
            "vlan",
            LinkType::ETHERNET,
            ethernet(0x8100, &[&[0, 5, 8, 0][..], &udp4].concat()),
        ),
        (
            "mpls",
            LinkType::ETHERNET,
            ethernet(0x8847, &[&[0, 1, 1, 9][..], &udp6].concat()),
        ),
        (
            "snap",
            LinkType::ETHERNET,
            ethernet(41, &[&[170, 170, 3, 0, 0, 0, 8, 0][..], &udp4].concat()),
        ),
        (
            "pppoe",
            LinkType::PPP_ETHER,
            [&[0x11, 0, 0, 1, 0, 9, 0, 0x21][..], &udp4].concat(),
        ),
        (
            "ppp",
            LinkType::PPP,
            [&[0xff, 3, 0, 0x57][..], &udp6].concat(),
        ),
        (
            "sll",
            LinkType::LINUX_SLL,
            [&[0; 14][..], &[8, 0], &udp4].concat(),
        ),
        (
            "sll2",
            LinkType::LINUX_SLL2,
            [&[8, 0][..], &[0; 18], &udp4].concat(),
        ),
        ("null", LinkType::NULL, [&[2, 0, 0, 0][..], &udp4].concat()),
        ("loop", LinkType::LOOP, [&[0, 0, 0, 24][..], &udp6].concat()),
        ("fragment", LinkType::RAW, v4_with(17, 0x2001, &[], &[0; 8])),
        (
            "ip-options",
            LinkType::IPV4,
            v4_with(6, 0, &[1; 8], &tcp(2, &[2, 4, 5, 0xb4], &[])),
        ),
        ("gre", LinkType::IPV6, v6(47, &udp4)),
    ];
    let index = |link| {
        let found = LinkType::SUPPORTED.iter().position(|&l| l == link);
        found.expect("listed as supported") as u8
    };
    let mut seeds: Seeds = frames
        .into_iter()
        .map(|(name, link, frame)| (name, [&[index(link), 0, 3][..], &frame].concat()))
        .collect();
    // RFC 2675: the length field is zero, and an option gives 65 536 bytes, most of which are missing here.
    let mut jumbogram = v6(0, &[]);
    jumbogram.extend([6, 0, 0xc2, 4, 0, 1, 0, 0]);
    jumbogram.extend(tcp(0x10, &[], &[]));
    let beyond = [index(LinkType::IPV6), 0xff, 0xff];
    seeds.insert("jumbogram", [&beyond[..], &jumbogram].concat());
    seeds
}

fn option_seeds() -> Seeds {
    Seeds::from([
        (
            "syn",
            vec![
                2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
            ],
        ),
        ("stamps", vec![1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1]),
        ("sack", [&[1, 1, 5, 26][..], &[7; 24]].concat()),
        ("end", vec![3, 3, 7, 0, 2, 4, 5, 0xb4]),
        ("unknown", vec![254, 4, 0, 0, 19, 18, 3]),
    ])
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target)
}

/// The repository contains exactly the seeds generated here. `SWELL_WRITE_SEEDS=1` writes them.
#[test]
fn seeds_in_the_tree_are_the_ones_made_here() {
    let write = std::env::var_os("SWELL_WRITE_SEEDS").is_some();
    for (target, _, seeds) in TARGETS {
        if write {
            std::fs::create_dir_all(folder(target)).expect("the tree can be written to");
        }
        let made = seeds();
        for (name, bytes) in &made {
            let path = folder(target).join(name);
            if write {
                std::fs::write(&path, bytes).expect("the tree can be written to");
            }
            let kept = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            // Other versions of a compressor may produce other bytes.
            if !["-gz", "-zst", "-xz"].iter().any(|c| name.ends_with(c)) {
                assert!(kept == *bytes, "{} is out of date", path.display());
            }
        }
        let kept = std::fs::read_dir(folder(target))
            .expect("read above")
            .count();
        assert_eq!(kept, made.len(), "stray seeds for {target}");
    }
}

#[test]
fn targets_hold_on_every_seed_and_its_mutations() {
    for (target, run, _) in TARGETS {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder(target))
            .expect("the seeds are in the tree")
            .map(|entry| entry.expect("a readable folder").path())
            .collect();
        files.sort();
        assert!(files.len() >= 5, "{target}");
        let seeds: Vec<Vec<u8>> = files
            .iter()
            .map(|f| std::fs::read(f).expect("listed above"))
            .collect();
        for (file, seed) in files.iter().zip(&seeds) {
            run(seed);
            let mut rng = Stream::new(1, &file.file_name().unwrap_or_default().to_string_lossy());
            for _ in 0..MUTATIONS {
                let other = &seeds[rng.below(seeds.len() as u64) as usize];
                run(&mutate(seed, other, &mut rng));
            }
        }
    }
}

/// Makes one to four changes: a bit, a byte, a four-byte field, a cut, a repeated piece, or the end of another seed.
fn mutate(seed: &[u8], other: &[u8], rng: &mut Stream) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.below(bytes.len() as u64) as usize;
        match rng.below(6) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.below(256) as u8,
            2 => {
                let field = [0, 1, 0x7fff_ffff, u32::MAX, 65536][rng.below(5) as usize];
                for (byte, new) in bytes[at..].iter_mut().zip(field.to_le_bytes()) {
                    *byte = new;
                }
            }
            3 => bytes.truncate(at),
            4 => bytes.extend_from_within(at..),
            _ => {
                bytes.truncate(at);
                bytes.extend(&other[rng.below(other.len() as u64) as usize..]);
            }
        }
    }
    bytes
}
