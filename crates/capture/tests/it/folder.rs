//! The folder of real captures. It is not part of the repository: `SWELL_TRACES` says where it is. Without it, what
//! `scripts/traces` makes serves in its place.

use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder, if it is there. Its absence is printed, and is a failure where `CI` is set.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub fn traces() -> Option<PathBuf> {
    let folder = std::env::var_os("SWELL_TRACES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"),
        PathBuf::from,
    );
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/traces");
    if let Some(folder) = [folder.clone(), made]
        .into_iter()
        .find(|f| f.join("MANIFEST.tsv").is_file())
    {
        return Some(folder);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "no traces in {} (set SWELL_TRACES, or run scripts/traces)",
        folder.display()
    );
    eprintln!(
        "skipped: no traces in {} (set SWELL_TRACES, or run scripts/traces)",
        folder.display()
    );
    None
}

/// Whether the folder is one that `scripts/traces` made: a few captures, all sound.
pub fn made(folder: &Path) -> bool {
    !folder.join("malformed").exists()
}

/// A line of the manifest: a file and what capinfos and tshark counted in it.
pub struct Entry {
    pub file: String,
    stats: String,
}

impl Entry {
    /// The number before a word in the statistics: `7723 pk`, `2 backward time steps`.
    pub fn before(&self, word: &str) -> Option<u64> {
        self.stats
            .split("; ")
            .find_map(|s| s.strip_suffix(word)?.trim().parse().ok())
    }

    /// The number behind a word: `TCP 279 (full handshake 167)`, `UDP 665`, `IPv6 4%`.
    pub fn behind(&self, word: &str) -> Option<u64> {
        self.text_behind(word)?
            .split([' ', '%'])
            .next()?
            .parse()
            .ok()
    }

    /// All that is said behind a word.
    pub fn text_behind(&self, word: &str) -> Option<&str> {
        self.stats
            .split("; ")
            .find_map(|s| s.strip_prefix(word)?.strip_prefix(' '))
    }
}

/// The captures and flow records of the manifest; not the distributions and delivery traces.
pub fn manifest(folder: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(folder.join("MANIFEST.tsv")).expect("checked by traces()");
    let entries: Vec<Entry> = text
        .lines()
        .skip(1)
        .map(|line| {
            let mut columns = line.split('\t');
            let file = columns.next().unwrap_or_default().to_string();
            let stats = columns.next_back().unwrap_or_default().to_string();
            Entry { file, stats }
        })
        .filter(|e| !e.file.starts_with("cdf/") && !e.file.starts_with("delivery/"))
        .collect();
    let least = if made(folder) { 6 } else { 151 };
    assert!(entries.len() >= least, "only {} entries", entries.len());
    entries
}

/// A file's bytes, decompressed.
pub fn plain(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut out = Vec::new();
    match bytes[..] {
        [0x1f, 0x8b, ..] => flate2::read::MultiGzDecoder::new(&bytes[..])
            .read_to_end(&mut out)
            .expect("the folder's gzip files are whole"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd::stream::read::Decoder::new(&bytes[..])
            .and_then(|mut d| d.read_to_end(&mut out))
            .expect("the folder's zstd files are whole"),
        _ => return bytes,
    };
    out
}

/// The regular files of a tar archive (POSIX ustar: name at 0, size in octal at 124, type at 156,
/// 512-byte blocks).
pub fn untar(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).trim().to_string()
    };
    let (mut files, mut at) = (Vec::new(), 0);
    while let Some(header) = archive.get(at..at + 512).filter(|h| h[0] != 0) {
        let size = usize::from_str_radix(&text(&header[124..136]), 8).expect("an octal size");
        let body = &archive[at + 512..at + 512 + size];
        if matches!(header[156], b'0' | 0) {
            files.push((text(&header[..100]), body.to_vec()));
        }
        at += 512 + size.next_multiple_of(512);
    }
    files
}

/// The archives of the folder and how many captures they hold.
pub const ARCHIVES: [(&str, usize); 2] = [
    ("linklayer/pcapng-conformance-le-be.tar.gz", 54),
    ("malformed/tcpdump-tests.tar.zst", 830),
];
