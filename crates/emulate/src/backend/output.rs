//! Reads what programs have written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// At most this many bytes at the beginning and at the end of an output are searched for measures.
const PART: u64 = 32 << 20;
/// Bytes at the end of an output that a message shows.
const SHOWN: u64 = 500;

/// What a program wrote.
#[derive(Debug, PartialEq)]
pub(super) struct Written {
    pub text: String,
    /// The middle is missing.
    pub cut: bool,
}

/// The text that a program wrote to a file; empty if there is none. Of a long one, the whole lines at its beginning and
/// at its end.
pub(super) fn written(path: &Path) -> Written {
    parts(path, PART).unwrap_or(Written {
        text: String::new(),
        cut: false,
    })
}

fn parts(path: &Path, part: u64) -> io::Result<Written> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    let cut = length > 2 * part;
    if cut {
        (&file).take(part).read_to_end(&mut bytes)?;
        bytes.truncate(bytes.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1));
        // The byte before the last part shows whether that begins with a line.
        let mut last = end(&mut file, length, part + 1)?;
        let line = last
            .iter()
            .position(|&b| b == b'\n')
            .map_or(last.len(), |i| i + 1);
        bytes.extend(last.drain(line..));
    } else {
        file.take(2 * part).read_to_end(&mut bytes)?;
    }
    let text = String::from_utf8(bytes);
    let text = text.unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    Ok(Written { text, cut })
}

/// At most the last `count` bytes of a file of this length.
fn end(file: &mut File, length: u64, count: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(length.saturating_sub(count)))?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last part of what a program wrote, for a message.
pub(super) fn tail(path: &Path) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        end(&mut file, length, SHOWN)
    };
    let bytes = read().unwrap_or_default();
    match String::from_utf8_lossy(&bytes).trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_has_its_first_and_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let found = parts(&path, 10).unwrap();
            (found.text, found.cut)
        };
        assert_eq!(read("a 1\nb 22\n"), ("a 1\nb 22\n".into(), false));
        // Twenty bytes are two parts.
        assert!(!read("0123456789\n12345678\n").1);
        // Lines that a cut divides are left out: their numbers would be wrong.
        assert_eq!(
            read("one 1\ntwo 22\n....\nthree 333\nsum 4\n"),
            ("one 1\nsum 4\n".into(), true)
        );
        // The last part begins with a line.
        assert_eq!(
            read("one 1\n...........\nfour 4444\n").0,
            "one 1\nfour 4444\n"
        );
        assert_eq!(read(&"x".repeat(30)), (String::new(), true));
        assert_eq!(written(&dir.path().join("none")).text, "");
    }

    #[test]
    fn a_message_shows_the_end_of_a_file_that_is_larger_than_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = File::create(&path).unwrap();
        // A sparse file: it takes no space on the disk.
        file.seek(SeekFrom::Start(1 << 42)).unwrap();
        io::Write::write_all(&mut file, "\nlast words\n".as_bytes()).unwrap();
        let shown = tail(&path);
        assert!(shown.ends_with("\nlast words"), "{shown}");
        assert!(shown.len() < 2 * SHOWN as usize);
        assert_eq!(tail(&dir.path().join("none")), "");
    }
}
