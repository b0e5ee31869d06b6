//! Traces compressed with gzip, zstd and xz.

use crate::build::*;
use crate::{read, read_clean};
use std::io::Write;
use swell_capture::{Compression, Problem, Reader};

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Compress = fn(&[u8]) -> Vec<u8>;

const ALL: [(Compression, Compress); 3] = [
    (Compression::Gzip, gzip),
    (Compression::Zstd, zstd),
    (Compression::Xz, xz),
];

#[test]
fn packets_are_the_same_through_every_compression_and_in_several_pieces() {
    let plain = pcap(1, &web_frames());
    let want = read_clean(&plain);
    for (compression, compress) in ALL {
        let whole = compress(&plain);
        let reader = Reader::new(&whole[..]).unwrap();
        assert_eq!(reader.compression(), compression);
        assert_eq!(read_clean(&whole), want, "{compression:?}");
        // Concatenated members, frames or streams.
        let pieces = [compress(&plain[..50]), compress(&plain[50..])].concat();
        assert_eq!(read_clean(&pieces), want, "{compression:?}");
    }
    // zstd with a skippable frame at the beginning.
    let mut skippable = vec![0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    skippable.extend(zstd(&plain));
    assert_eq!(read_clean(&skippable), want);
}

#[test]
fn a_compressed_file_that_ends_early_keeps_what_was_read_and_says_so() {
    // Long enough that the decoder returns part of it before it detects the missing rest.
    let frames: Vec<Vec<u8>> = (0..40_000u32)
        .map(|i| {
            ethernet(
                0x0800,
                &v4(17, &udp(&i.wrapping_mul(2_654_435_761).to_be_bytes())),
            )
        })
        .collect();
    let plain = pcap(1, &frames);
    for (compression, compress) in ALL {
        let whole = compress(&plain);
        let (packets, counts, error) = read(&whole[..whole.len() * 3 / 4]);
        let error = error.expect("a quarter is missing");
        assert!(
            matches!(error.problem, Problem::Decompress { format, .. } if format == compression.name()),
            "{compression:?}: {error}"
        );
        assert!(!packets.is_empty(), "{compression:?}");
        assert_eq!(counts.packets, packets.len() as u64);
        assert_eq!(error.records, counts.records);
        assert!(error.to_string().contains("of the uncompressed data"));
    }
}

#[test]
fn decoders_may_not_ask_for_unlimited_memory() {
    // A zstd frame that requires a window of 2^31 bytes: descriptor, window descriptor, one raw block.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3];
    frame.extend([0x09, 0, 0, 1]);
    let error = Reader::new(&frame[..]).expect_err("a window of 2 GiB");
    assert!(
        matches!(error.problem, Problem::Decompress { format: "zstd", .. }),
        "{error}"
    );
}

#[test]
fn compressed_twice_is_said_to_be_so() {
    let error = Reader::new(&gzip(&zstd(&pcap(1, &[])))[..]).expect_err("two layers");
    assert!(error.to_string().contains("compressed twice"), "{error}");
}
