//! Configuration of media streams, and the quantities derived from it.

use swell_base::{Bytes, Dur, Rate};

use crate::Access;

/// Media, server and viewers.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamConfig {
    /// Media rate, without headers.
    pub rate: Rate,
    /// Frames per second.
    pub frames: u32,
    /// Media time of a stream.
    pub length: Dur,
    /// Media time that a viewer buffers before playback starts, and after it has stopped.
    pub buffer: Dur,
    /// Speed relative to playback at which the server sends until the buffer's amount of media has been sent.
    pub preroll: f64,
    /// Largest amount of media in a packet. Frames are divided into packets of equal size.
    pub packet: Bytes,
    /// Whether viewers request missing packets.
    pub repair: bool,
    /// Number of viewers, each with its own path.
    pub viewers: u32,
    /// Time between the starts of a viewer's successive streams; `None`: a stream starts when the previous one is over.
    pub every: Option<Dur>,
    /// When the first stream is requested.
    pub start: Dur,
    /// Path of every viewer.
    pub client: Access,
    /// Path of the server.
    pub server: Access,
}

/// Time added to a viewing beyond its duration on an ideal network.
const GRACE: Dur = Dur::from_secs(2);

impl StreamConfig {
    /// Number of frames in a stream.
    pub(super) fn count(&self) -> u32 {
        (self.length.as_secs_f64() * f64::from(self.frames)).round() as u32
    }

    pub(super) fn frame_time(&self) -> Dur {
        Dur::from_secs_f64(1.0 / f64::from(self.frames))
    }

    /// Number of packets in a frame, and payload of each. The payload is rounded up, so that all packets are equal.
    pub(super) fn cut(&self) -> (u32, u32) {
        let frame = self.rate.bps() as f64 / 8.0 / f64::from(self.frames);
        let n = (frame / self.packet.0 as f64).ceil().max(1.0);
        (n as u32, (frame / n).ceil().max(8.0) as u32)
    }

    /// Payload of a packet, bytes.
    pub fn payload(&self) -> u32 {
        self.cut().1
    }

    /// Packets per second of playback.
    pub fn packets_per_second(&self) -> f64 {
        f64::from(self.frames * self.cut().0)
    }

    /// When the server sends packet `j`, relative to the request.
    pub(super) fn offset(&self, j: u32) -> Dur {
        let media = Dur::from_secs_f64(f64::from(j) / self.packets_per_second());
        let ahead = media.min(self.buffer);
        ahead.scale(1.0 / self.preroll) + media.saturating_sub(ahead)
    }

    /// Duration of a viewing, from the request.
    pub fn watched(&self) -> Dur {
        self.buffer.min(self.length).scale(1.0 / self.preroll) + self.length + GRACE
    }
}
