//! What is watched, and what follows from it.

use swell_base::{Bytes, Dur, Rate};

use crate::Access;

/// What is watched, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    /// Rate of the media, without headers.
    pub rate: Rate,
    /// Frames per second.
    pub frames: u32,
    /// How long it plays.
    pub length: Dur,
    /// Media that a viewer waits for before playing begins, and after it stopped.
    pub buffer: Dur,
    /// How many times faster than it plays the server sends until that much is sent.
    pub preroll: f64,
    /// The most media in a packet: frames are cut into equal packets.
    pub packet: Bytes,
    /// Whether viewers ask for what is missing.
    pub repair: bool,
    /// Viewers, each with a path of its own.
    pub viewers: u32,
    /// From the beginning of a viewer's stream to that of the next; none: when it is over.
    pub every: Option<Dur>,
    /// When the first stream is asked for.
    pub start: Dur,
    /// Path of every viewer.
    pub client: Access,
    /// Path of the server.
    pub server: Access,
}

/// A stream is watched so much longer than it takes where packets take no time.
const GRACE: Dur = Dur::from_secs(2);

impl StreamConfig {
    /// Frames of a stream.
    pub(super) fn count(&self) -> u32 {
        (self.length.as_secs_f64() * f64::from(self.frames)).round() as u32
    }

    pub(super) fn frame_time(&self) -> Dur {
        Dur::from_secs_f64(1.0 / f64::from(self.frames))
    }

    /// Packets of a frame, and payload of each: rounded up, so that all are equal.
    pub(super) fn cut(&self) -> (u32, u32) {
        let frame = self.rate.bps() as f64 / 8.0 / f64::from(self.frames);
        let n = (frame / self.packet.0 as f64).ceil().max(1.0);
        (n as u32, (frame / n).ceil().max(8.0) as u32)
    }

    /// Payload of a packet, bytes.
    pub fn payload(&self) -> u32 {
        self.cut().1
    }

    /// Packets of a second, as they are played.
    pub fn packets_per_second(&self) -> f64 {
        f64::from(self.frames * self.cut().0)
    }

    /// When the server sends packet `j`, after it was asked.
    pub(super) fn offset(&self, j: u32) -> Dur {
        let media = Dur::from_secs_f64(f64::from(j) / self.packets_per_second());
        let ahead = media.min(self.buffer);
        ahead.scale(1.0 / self.preroll) + media.saturating_sub(ahead)
    }

    /// How long a stream is watched, from the request on.
    pub fn watched(&self) -> Dur {
        self.buffer.min(self.length).scale(1.0 / self.preroll) + self.length + GRACE
    }
}
