//! Reads a file of flow records from its first byte to its last.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use swell_base::Warning;

use super::error::{FlowError, FlowProblem};
use super::metered::Metered;
use super::nfdump::Nfdump;
use super::process::CollectingProcess;
use super::text::Text;
use super::{FlowCounts, FlowRecord, Metering, export, messages, nfdump, text};
use crate::error::Problem;
use crate::reader::{failure, is_capture, step};
use crate::window::Window;
use crate::{Compression, Format, Reader, foreign, source};

/// The format of a file of flow records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFormat {
    /// A capture of export messages.
    Capture(Format),
    /// Consecutive export messages: an IPFIX file (RFC 5655), or datagrams as they arrived.
    Messages,
    /// An nfdump file.
    Nfdump(&'static str),
    /// Text with one record per line.
    Text(&'static str),
    /// A capture of packets, which this crate meters.
    Metered(Format),
}

impl FlowFormat {
    /// The name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            FlowFormat::Capture(format) | FlowFormat::Metered(format) => format.name(),
            FlowFormat::Messages => "export messages",
            FlowFormat::Text(name) | FlowFormat::Nfdump(name) => name,
        }
    }
}

/// Reads flow records one by one from any supported file. Memory use does not grow with the file.
///
/// ```
/// use swell_capture::flow::FlowReader;
///
/// // An IPFIX file: a template (source, destination, packets, bytes) and a record.
/// let mut file = vec![0, 10, 0, 60, 0, 0, 0x03, 0xe8, 0, 0, 0, 0, 0, 0, 0, 1];
/// file.extend([0, 2, 0, 24, 1, 0, 0, 4, 0, 8, 0, 4, 0, 12, 0, 4, 0, 2, 0, 4, 0, 1, 0, 4]);
/// file.extend([1, 0, 0, 20, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 180]);
///
/// let mut reader = FlowReader::new(&file[..])?;
/// let record = reader.next_record()?.expect("there is one");
/// assert_eq!((record.packets, record.bytes), (3, 180));
/// assert!(reader.next_record()?.is_none());
/// assert_eq!(reader.counts().templates, 1);
/// # Ok::<(), swell_capture::flow::FlowError>(())
/// ```
pub struct FlowReader<'a> {
    source: Source<'a>,
    format: FlowFormat,
    process: CollectingProcess,
    /// The records of the current message, and how many of them have been returned.
    ready: Vec<FlowRecord>,
    given: usize,
    compression: Compression,
    file: Option<Box<str>>,
    over: bool,
    /// The error that ends the file. It is returned after the records before it.
    error: Option<FlowError>,
}

enum Source<'a> {
    Capture(Box<Reader<'a>>),
    Metered(Box<Metered<'a>>),
    Messages(Window<'a>),
    Text(Window<'a>, Text),
    Nfdump(Window<'a>, Nfdump),
}

impl FlowReader<'static> {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// As [`FlowReader::new`], or if the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<FlowReader<'static>, FlowError> {
        let path = path.as_ref();
        if path.as_os_str() == "-" {
            return FlowReader::named("standard input", std::io::stdin());
        }
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => FlowReader::named(&name, file),
            Err(e) => Err(beginning(Some(name.into()), Problem::Open(e))),
        }
    }
}

impl<'a> FlowReader<'a> {
    /// Reads from any source of bytes, which need not be buffered.
    ///
    /// # Errors
    /// If the first bytes cannot be read, or belong to no format with flow records. A capture without any flow
    /// records is not an error here, because that is known only at its end.
    pub fn new(source: impl Read + Send + 'a) -> Result<FlowReader<'a>, FlowError> {
        FlowReader::start(None, source)
    }

    /// Like [`FlowReader::new`], with a name for error messages.
    ///
    /// # Errors
    /// As [`FlowReader::new`].
    pub fn named(name: &str, source: impl Read + Send + 'a) -> Result<FlowReader<'a>, FlowError> {
        FlowReader::start(Some(name.into()), source)
    }

    fn start(
        file: Option<Box<str>>,
        source: impl Read + Send + 'a,
    ) -> Result<FlowReader<'a>, FlowError> {
        let (compression, decoded) = match source::open(source) {
            Ok(opened) => opened,
            Err(e) => return Err(beginning(file, Problem::Read(e))),
        };
        let mut window = Window::new(decoded, step(compression));
        let mut process = CollectingProcess::new();
        let head = window.peek(foreign::ENOUGH);
        let problem = if head.is_empty() {
            FlowProblem::File(Problem::Empty)
        } else {
            FlowProblem::NotFlowRecords(foreign::looks_like(head))
        };
        let (format, from) = if is_capture(head) {
            process.places_are_packets();
            let reader = Reader::on(file.clone(), window, compression).map_err(FlowError::from)?;
            let format = FlowFormat::Capture(reader.format());
            (format, Source::Capture(Box::new(reader)))
        } else if nfdump::looks_like(head) {
            match Nfdump::open(&mut window) {
                Ok(nfdump) => {
                    let format = FlowFormat::Nfdump(nfdump.name());
                    (format, Source::Nfdump(window, nfdump))
                }
                Err(found) => {
                    let failed = failure(&mut window, compression);
                    let why = failed.map_or(found, FlowProblem::File);
                    return Err(FlowError {
                        file,
                        ..at(&window, why)
                    });
                }
            }
        } else if messages::looks_like(head) {
            (FlowFormat::Messages, Source::Messages(window))
        } else if let Some(layout) = text::looks_like(head) {
            let lines = Text::new(layout);
            (FlowFormat::Text(lines.name()), Source::Text(window, lines))
        } else {
            let problem = failure(&mut window, compression).map_or(problem, FlowProblem::File);
            return Err(FlowError {
                file,
                offset: 0,
                uncompressed: compression != Compression::Plain,
                records: 0,
                problem,
            });
        };
        Ok(FlowReader {
            source: from,
            format,
            process,
            ready: Vec::new(),
            given: 0,
            compression,
            file,
            over: false,
            error: None,
        })
    }

    /// Meters the packets of a capture instead of reading an exporter's records. Packets that the capture system
    /// recorded twice are metered once. [`FlowReader::doubts`] tells which of its records could not be read, and why.
    pub fn metered(reader: Reader<'a>, options: Metering) -> FlowReader<'a> {
        FlowReader {
            format: FlowFormat::Metered(reader.format()),
            compression: reader.compression(),
            file: reader.file().map(Into::into),
            source: Source::Metered(Box::new(Metered::new(reader, options))),
            process: CollectingProcess::new(),
            ready: Vec::new(),
            given: 0,
            over: false,
            error: None,
        }
    }

    /// The next record; `None` at the end. Data without a record is skipped and counted.
    ///
    /// # Errors
    /// If the file is damaged, cut short or cannot be read further. Everything that was read before stays valid.
    /// After an error the file is over (`None`).
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<FlowRecord>, FlowError> {
        loop {
            if let Some(record) = self.ready.get(self.given) {
                self.given += 1;
                return Ok(Some(*record));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The next records: those of one message of the file. Empty at the end.
    ///
    /// # Errors
    /// As [`FlowReader::next_record`].
    pub fn next_records(&mut self) -> Result<&[FlowRecord], FlowError> {
        while self.given >= self.ready.len() {
            if !self.fill()? {
                return Ok(&[]);
            }
        }
        let from = std::mem::replace(&mut self.given, self.ready.len());
        Ok(&self.ready[from..])
    }

    /// Reads one message or packet; false at the end.
    fn fill(&mut self) -> Result<bool, FlowError> {
        self.ready.clear();
        self.given = 0;
        if self.over {
            return self.error.take().map_or(Ok(false), Err);
        }
        let (process, ready) = (&mut self.process, &mut self.ready);
        let more = match &mut self.source {
            Source::Capture(reader) => {
                let place = reader.offset();
                reader
                    .next_frame(|frame| export::frame(frame, place, process, ready))
                    .map(|frame| frame.is_some())
                    .map_err(FlowError::from)
            }
            Source::Metered(metered) => {
                let more = metered.next(&mut process.counts, ready);
                for record in &*ready {
                    process.counts.record(record);
                    process.counts.sampled(record.sampling, 1);
                }
                more.map_err(FlowError::from)
            }
            Source::Messages(window) => {
                messages::next(window, process, ready).map_err(|problem| at(window, problem))
            }
            Source::Nfdump(window, nfdump) => nfdump
                .next(window, &mut process.counts, ready)
                .map_err(|problem| at(window, problem)),
            Source::Text(window, text) => text
                .next(window, &mut process.counts, ready)
                .map_err(|problem| at(window, problem)),
        };
        self.ending(more)
    }

    /// Handles the end of a file, with or without an error.
    fn ending(&mut self, more: Result<bool, FlowError>) -> Result<bool, FlowError> {
        if matches!(more, Ok(true)) {
            return Ok(true);
        }
        self.over = true;
        self.process.finish();
        // A source that failed looks like one that ended until its error is requested.
        let failed = match &mut self.source {
            Source::Capture(_) | Source::Metered(_) => None,
            Source::Messages(window) | Source::Text(window, _) | Source::Nfdump(window, _) => {
                failure(window, self.compression).map(|problem| (window.offset(), problem))
            }
        };
        // At the end, metering returns its last records first.
        let left = !self.ready.is_empty();
        let mut error = match (failed, more) {
            (Some((offset, problem)), _) => FlowError {
                offset,
                ..beginning(None, problem)
            },
            (None, Ok(_)) => return Ok(left),
            (None, Err(error)) => error,
        };
        error.file = self.file.clone();
        error.uncompressed = self.compression != Compression::Plain;
        error.records = self.process.counts().records;
        if left {
            self.error = Some(error);
            return Ok(true);
        }
        Err(error)
    }

    /// What was read and skipped so far.
    pub fn counts(&self) -> &FlowCounts {
        self.process.counts()
    }

    /// Warnings about the capture that holds the exports or the metered packets: what it lost, what was skipped and why,
    /// wrong stamps, and packets that were recorded twice.
    pub fn doubts(&self) -> Vec<Warning> {
        match &self.source {
            Source::Capture(reader) => reader.counts().doubts(),
            Source::Metered(metered) => {
                let mut doubts = metered.reader.counts().doubts();
                doubts.extend(metered.doubts());
                doubts
            }
            Source::Messages(_) | Source::Text(..) | Source::Nfdump(..) => Vec::new(),
        }
    }

    /// The file format.
    pub fn format(&self) -> FlowFormat {
        self.format
    }

    /// The compression of the file.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Bytes read so far, after decompression.
    pub fn offset(&self) -> u64 {
        match &self.source {
            Source::Capture(reader) => reader.offset(),
            Source::Metered(metered) => metered.reader.offset(),
            Source::Messages(window) | Source::Text(window, _) | Source::Nfdump(window, _) => {
                window.offset()
            }
        }
    }
}

impl fmt::Debug for FlowReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowReader")
            .field("file", &self.file)
            .field("format", &self.format)
            .field("compression", &self.compression)
            .field("offset", &self.offset())
            .field("counts", self.counts())
            .finish_non_exhaustive()
    }
}

/// An error at the current position of a window.
fn at(window: &Window<'_>, problem: FlowProblem) -> FlowError {
    FlowError {
        file: None,
        offset: window.offset(),
        uncompressed: false,
        records: 0,
        problem,
    }
}

fn beginning(file: Option<Box<str>>, problem: Problem) -> FlowError {
    FlowError {
        file,
        offset: 0,
        uncompressed: false,
        records: 0,
        problem: problem.into(),
    }
}

impl From<crate::Error> for FlowError {
    fn from(e: crate::Error) -> FlowError {
        FlowError {
            file: e.file,
            offset: e.offset,
            uncompressed: e.uncompressed,
            records: 0,
            problem: e.problem.into(),
        }
    }
}
