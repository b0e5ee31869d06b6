//! Reads a trace from its first byte to its last.

use crate::counts::Counts;
use crate::dissect::dissect_into;
use crate::error::{Error, Problem};
use crate::pcap::{self, Pcap};
use crate::pcapng::{self, Pcapng};
use crate::skip::Skip;
use crate::snoop::{self, Snoop};
use crate::source::{self, Compression};
use crate::window::{CHUNK, Window};
use crate::{Frame, Interface, LinkType, Packet, foreign};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The file format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap, any variant.
    Pcap,
    /// pcapng.
    Pcapng,
    /// snoop (RFC 1761).
    Snoop,
}

impl Format {
    /// The name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pcap => "pcap",
            Format::Pcapng => "pcapng",
            Format::Snoop => "snoop",
        }
    }
}

/// Most bytes that one read requests from a decoder. A decoder that meets damaged data returns an error and loses
/// what it decoded in the same read, so small reads limit the loss.
const DECODER_STEP: usize = 16 * 1024;

/// Most bytes that one read requests from a source.
pub(crate) const fn step(compression: Compression) -> usize {
    match compression {
        Compression::Plain => CHUNK,
        _ => DECODER_STEP,
    }
}

/// Reads a trace packet by packet. Memory use does not grow with the trace.
pub struct Reader<'a> {
    window: Window<'a>,
    state: State,
    compression: Compression,
    file: Option<Box<str>>,
    interfaces: Vec<Interface>,
    counts: Counts,
    over: bool,
}

impl Reader<'static> {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// As [`Reader::new`], or if the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<'static>, Error> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return Reader::named("standard input", std::io::stdin());
        }
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Reader::named(&name, file),
            Err(e) => Err(beginning(Some(name.into()), Problem::Open(e))),
        }
    }
}

impl<'a> Reader<'a> {
    /// Reads a trace from any source of bytes, which need not be buffered.
    ///
    /// # Errors
    /// If the first bytes cannot be read or do not belong to a trace.
    pub fn new(source: impl Read + Send + 'a) -> Result<Reader<'a>, Error> {
        Reader::start(None, source)
    }

    /// Like [`Reader::new`], with a name for error messages.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn named(name: &str, source: impl Read + Send + 'a) -> Result<Reader<'a>, Error> {
        Reader::start(Some(name.into()), source)
    }

    fn start(file: Option<Box<str>>, source: impl Read + Send + 'a) -> Result<Reader<'a>, Error> {
        let (compression, decoded) = match source::open(source) {
            Ok(opened) => opened,
            Err(e) => return Err(beginning(file, Problem::Read(e))),
        };
        let step = step(compression);
        Reader::on(file, Window::new(decoded, step), compression)
    }

    /// Reads a trace from a window with known compression.
    pub(crate) fn on(
        file: Option<Box<str>>,
        mut window: Window<'a>,
        compression: Compression,
    ) -> Result<Reader<'a>, Error> {
        let mut interfaces = Vec::new();
        let started = start_format(&mut window, &mut interfaces);
        match started {
            Ok(state) => Ok(Reader {
                window,
                state,
                compression,
                file,
                interfaces,
                counts: Counts::default(),
                over: false,
            }),
            Err(problem) => {
                let problem = failure(&mut window, compression).unwrap_or(problem);
                Err(Error {
                    uncompressed: compression != Compression::Plain,
                    ..beginning(file, problem)
                })
            }
        }
    }

    /// The next packet; `None` at the end. Records without an IP packet are skipped and counted.
    ///
    /// # Errors
    /// If the file is damaged, cut short or cannot be read further. Everything that was read before stays valid.
    /// After an error the trace is over (`None`).
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet>, Error> {
        let mut packet = Packet::BLANK;
        Ok(self.read_into(&mut packet)?.then_some(packet))
    }

    /// Like [`Reader::next_packet`], but overwrites `packet`; false at the end. In loops over long traces this avoids
    /// moving every packet.
    ///
    /// # Errors
    /// As [`Reader::next_packet`]. After an error and at the end, the contents of `packet` are meaningless.
    #[inline]
    pub fn read_into(&mut self, packet: &mut Packet) -> Result<bool, Error> {
        loop {
            let decoded = self.next_frame(|frame| (dissect_into(frame, packet), frame.link))?;
            match decoded {
                Some((Ok(()), _)) => {
                    self.counts.packet(packet);
                    return Ok(true);
                }
                Some((Err(reason), link)) => self.counts.skip(reason, link),
                None => return Ok(false),
            }
        }
    }

    /// Passes the next record as captured, without decoding it; `None` at the end. It counts as a record, but neither
    /// as a packet nor as skipped.
    ///
    /// # Errors
    /// As [`Reader::next_packet`].
    #[inline]
    pub fn next_frame<T>(
        &mut self,
        look: impl FnOnce(&Frame<'_>) -> T,
    ) -> Result<Option<T>, Error> {
        if self.over {
            return Ok(None);
        }
        let next = self
            .state
            .next(&mut self.window, &mut self.counts, &mut self.interfaces);
        let problem = match next {
            Ok(Some(frame)) => {
                self.counts.record(&frame);
                return Ok(Some(look(&frame)));
            }
            Ok(None) => None,
            Err(problem) => Some(problem),
        };
        match self.end(problem) {
            None => Ok(None),
            Some(e) => Err(e),
        }
    }

    /// Counts the packet of a record of [`Reader::next_frame`], or why it has none.
    pub(crate) fn count(&mut self, decoded: Result<&Packet, (Skip, LinkType)>) {
        match decoded {
            Ok(packet) => self.counts.packet(packet),
            Err((reason, link)) => self.counts.skip(reason, link),
        }
    }

    /// The file as the user named it, if it has a name.
    pub(crate) fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// What was read and skipped so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The interfaces described so far, in the order of [`Packet::interface`]. The list is complete only at the end,
    /// since a pcapng file may describe an interface at any time.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The file format.
    pub fn format(&self) -> Format {
        match self.state {
            State::Pcap(_) => Format::Pcap,
            State::Pcapng(_) => Format::Pcapng,
            State::Snoop(_) => Format::Snoop,
        }
    }

    /// The compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Bytes read so far, after decompression.
    pub fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// Ends the trace, regularly or with an error.
    #[cold]
    fn end(&mut self, problem: Option<Problem>) -> Option<Error> {
        self.over = true;
        // A source that failed looks like one that ended until its error is requested.
        let problem = failure(&mut self.window, self.compression).or(problem)?;
        Some(Error {
            file: self.file.clone(),
            // The offset is that of the damaged record, because such records are not consumed.
            offset: self.window.offset(),
            uncompressed: self.compression != Compression::Plain,
            records: self.counts.records,
            problem,
        })
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.file)
            .field("format", &self.format())
            .field("compression", &self.compression)
            .field("offset", &self.offset())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

enum State {
    Pcap(Pcap),
    Pcapng(Pcapng),
    Snoop(Snoop),
}

impl State {
    #[inline]
    fn next<'w>(
        &mut self,
        window: &'w mut Window<'_>,
        counts: &mut Counts,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Frame<'w>>, Problem> {
        match self {
            State::Pcap(pcap) => pcap.next(window, counts),
            State::Pcapng(pcapng) => pcapng.next(window, counts, interfaces),
            State::Snoop(snoop) => snoop.next(window, counts),
        }
    }
}

/// Recognises the format and consumes the file header.
fn start_format(
    window: &mut Window<'_>,
    interfaces: &mut Vec<Interface>,
) -> Result<State, Problem> {
    let head = window.peek(foreign::ENOUGH);
    if head.is_empty() {
        return Err(Problem::Empty);
    }
    let (state, interface, header) = if let Some(magic) = pcap::Magic::sniff(head) {
        let (pcap, interface) = Pcap::open(magic, head)?;
        (State::Pcap(pcap), interface, pcap::HEADER)
    } else if head.starts_with(&pcapng::SECTION_HEADER.to_le_bytes()) {
        return Ok(State::Pcapng(Pcapng::new()));
    } else if head.starts_with(snoop::MAGIC) {
        let (snoop, interface) = Snoop::open(head)?;
        (State::Snoop(snoop), interface, snoop::HEADER)
    } else {
        return Err(Problem::NotACapture(foreign::looks_like(head)));
    };
    window.consume(header);
    interfaces.push(interface);
    Ok(state)
}

/// Whether these are the first bytes of a capture.
pub(crate) fn is_capture(head: &[u8]) -> bool {
    pcap::Magic::sniff(head).is_some()
        || head.starts_with(&pcapng::SECTION_HEADER.to_le_bytes())
        || head.starts_with(snoop::MAGIC)
}

/// The error that ended the data early, if any.
pub(crate) fn failure(window: &mut Window<'_>, compression: Compression) -> Option<Problem> {
    let source = window.take_failure()?;
    Some(match compression {
        Compression::Plain => Problem::Read(source),
        other => Problem::Decompress {
            format: other.name(),
            source,
        },
    })
}

fn beginning(file: Option<Box<str>>, problem: Problem) -> Error {
    Error {
        file,
        offset: 0,
        uncompressed: false,
        records: 0,
        problem,
    }
}
