//! Writes packets to a pcapng file (draft-ietf-opsawg-pcapng).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::pcapng::{
    BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE, NAME as INTERFACE_NAME, SECTION_HEADER,
};
use crate::{Heading, LinkType};

/// Nanoseconds: `if_tsresol` as a negative power of ten.
const NANOSECONDS: u8 = 9;

// Option codes, by block (sections 4.1, 4.2 and 4.3).
const END_OF_OPTIONS: u16 = 0;
const SECTION_USER_APPLICATION: u16 = 4;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// A packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Number of its interface, as [`Writer::interface`] returned it.
    pub interface: u32,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// Bytes on the wire, link layer included, however many are kept.
    pub wire_len: u32,
    /// The direction of the packet.
    pub heading: Heading,
    /// The bytes to keep, from the first one. They are cut to the interface's snap length and to `wire_len`.
    pub data: &'a [u8],
}

/// Why a trace could not be written further.
#[derive(Debug, thiserror::Error)]
#[error("{}cannot be written at byte {offset}: {source}", prefix(.file))]
pub struct WriteError {
    /// The file, if it has a name.
    pub file: Option<Box<str>>,
    /// Bytes written before the error; some may not have reached the file.
    pub offset: u64,
    /// The cause.
    #[source]
    pub source: io::Error,
}

fn prefix(file: &Option<Box<str>>) -> String {
    file.as_ref().map_or(String::new(), |f| format!("{f}: "))
}

/// Writes packets to a pcapng file with one little-endian section, times in nanoseconds, and any number of
/// interfaces. Memory use does not grow with the file.
///
/// ```
/// use swell_capture::{Heading, LinkType, Reader, Record, Writer};
///
/// let mut writer = Writer::new(Vec::new(), "an example")?;
/// let link = writer.interface("uplink", LinkType::RAW, 64)?;
/// let mut data = vec![0x45, 0, 5, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
/// data.extend([0, 53, 0x0f, 0xa0, 4, 0xec, 0, 0]);
/// writer.packet(&Record {
///     interface: link,
///     time: 1_500_000_001,
///     wire_len: 1280,
///     heading: Heading::Outbound,
///     data: &data,
/// })?;
/// let file = writer.finish()?;
///
/// let mut reader = Reader::new(&file[..])?;
/// let packet = reader.next_packet()?.expect("there is one");
/// assert_eq!((packet.time, packet.ip_len), (1_500_000_001, 1280));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    file: Option<Box<str>>,
    offset: u64,
    /// Snap lengths by interface.
    interfaces: Vec<u32>,
    /// The block that is being written.
    block: Vec<u8>,
}

impl Writer<File> {
    /// Creates or truncates a file. `application` is recorded in the file as the program that wrote it.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn create(path: impl AsRef<Path>, application: &str) -> Result<Writer<File>, WriteError> {
        let path = path.as_ref();
        let name = path.display().to_string().into_boxed_str();
        match File::create(path) {
            Ok(file) => Writer::start(Some(name), file, application),
            Err(source) => Err(WriteError {
                file: Some(name),
                offset: 0,
                source,
            }),
        }
    }
}

impl<W: Write> Writer<W> {
    /// Starts a file in any sink of bytes, which need not be buffered.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn new(sink: W, application: &str) -> Result<Writer<W>, WriteError> {
        Writer::start(None, sink, application)
    }

    fn start(file: Option<Box<str>>, sink: W, application: &str) -> Result<Writer<W>, WriteError> {
        let mut writer = Writer {
            out: BufWriter::with_capacity(1 << 16, sink),
            file,
            offset: 0,
            interfaces: Vec::new(),
            block: Vec::new(),
        };
        writer.begin(SECTION_HEADER);
        writer.word(BYTE_ORDER_MAGIC);
        writer.half(1);
        writer.half(0);
        // Section length: not specified.
        writer.block.extend([0xff; 8]);
        writer.option(SECTION_USER_APPLICATION, application.as_bytes());
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface whose packets are cut to `snaplen` bytes (0: not cut). Returns its number.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn interface(
        &mut self,
        name: &str,
        link: LinkType,
        snaplen: u32,
    ) -> Result<u32, WriteError> {
        self.begin(INTERFACE);
        self.half(link.0);
        self.half(0);
        self.word(snaplen);
        self.option(INTERFACE_NAME, name.as_bytes());
        self.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.end()?;
        self.interfaces.push(snaplen);
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// If the sink fails, or the packet's interface was not described.
    pub fn packet(&mut self, record: &Record<'_>) -> Result<(), WriteError> {
        let Some(&snaplen) = self.interfaces.get(record.interface as usize) else {
            let reason = format!("there is no interface {}", record.interface);
            return Err(self.failure(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        };
        let most = match snaplen {
            0 => record.wire_len,
            n => n.min(record.wire_len),
        };
        let kept = record.data.len().min(most as usize);
        self.begin(ENHANCED_PACKET);
        self.word(record.interface);
        self.word((record.time >> 32) as u32);
        self.word(record.time as u32);
        self.word(kept as u32);
        self.word(record.wire_len);
        self.padded(&record.data[..kept]);
        match record.heading {
            // The interface's name states these.
            Heading::Unknown | Heading::Up | Heading::Down => {}
            Heading::Inbound => self.option(PACKET_FLAGS, &1u32.to_le_bytes()),
            Heading::Outbound => self.option(PACKET_FLAGS, &2u32.to_le_bytes()),
        }
        self.end()
    }

    /// Bytes written so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Flushes all data and returns the sink.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        match self.out.flush() {
            Ok(()) => {}
            Err(source) => return Err(self.failure(source)),
        }
        let (file, offset) = (self.file.take(), self.offset);
        self.out.into_inner().map_err(|e| WriteError {
            file,
            offset,
            source: e.into_error(),
        })
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // Placeholder for the block length, which is known at the end.
        self.word(0);
    }

    fn half(&mut self, value: u16) {
        self.block.extend(value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes an option. Its value is cut to the maximum of the 16-bit length.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.half(code);
        self.half(value.len() as u16);
        self.padded(value);
    }

    fn end(&mut self) -> Result<(), WriteError> {
        // This option ends a list of options. Without other options it is harmless.
        self.half(END_OF_OPTIONS);
        self.half(0);
        let length = self.block.len() as u32 + 4;
        self.word(length);
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        match self.out.write_all(&self.block) {
            Ok(()) => {
                self.offset += u64::from(length);
                Ok(())
            }
            Err(source) => Err(self.failure(source)),
        }
    }

    fn failure(&self, source: io::Error) -> WriteError {
        WriteError {
            file: self.file.clone(),
            offset: self.offset,
            source,
        }
    }
}
