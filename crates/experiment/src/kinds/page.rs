//! Browsers that load pages of many objects.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Dur};
use swell_workload::{Object, Opening, PageConfig};

use super::contract::{
    Complaint, Data, Files, Input, Keys, Machine, Plausible, Plays, Resolving, Role, Setting, Slot,
    access, reads,
};
use super::defaults::{one, yes};
use super::{Active, Fetches, Traffic, har};
use crate::error::RunError;
use crate::file::findings::Findings;
use crate::file::{BackendKind, Route, Stack, TcpSettings};
use crate::hash::Hash;
use crate::measure::{COMPLETION_TIME, FAILURES, FIRST_BYTE, Failing, Measure, REQUEST_RATE};
use crate::simulate::transport::{is_quic, quic, tcp};
use crate::store::ModelFacts;

/// Browsers that load a page: a tree of objects, of which each names others. How long a page takes is judged, from its
/// request to the last byte of its last object, and how long its first byte takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The name it goes by in tables and pictures.
    pub name: String,
    /// A HAR file, relative to this file, as browsers save it; or a bundled page: `article`, `shop`, `app`, `document`.
    #[serde(default = "page")]
    pub page: String,
    /// How connections are used.
    #[serde(default)]
    pub protocol: Protocol,
    /// Connections to each host at most, with HTTP/1.1.
    #[serde(default = "connections")]
    pub connections: u32,
    /// Whether answers on one connection take turns, 16 KiB each, instead of coming in the order of their requests:
    /// the parameter `incremental` of RFC 9218. Only with HTTP/2 and HTTP/3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incremental: bool,
    /// Whether TCP connections begin with a handshake of TLS 1.3: one round trip more. QUIC's handshake always
    /// includes that of TLS.
    #[serde(default = "yes")]
    pub tls: bool,
    /// Whether connections are kept for the next page.
    #[serde(default)]
    pub keep: bool,
    /// Browsers, each on its own access path.
    #[serde(default = "one")]
    pub clients: u32,
    /// From the beginning of a page to the beginning of the next; what is not there by then is given up. Default:
    /// `think` after a page is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Dur>,
    /// Pause after a page.
    #[serde(default)]
    pub think: Dur,
    /// One-way delay of the access path on each side of the bottleneck. Default: what makes the
    /// network's `rtt`, or its `access_delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Dur>,
    /// The TCP that browsers and servers run. With HTTP/3: congestion control, initial window and slow-start
    /// threshold, packet size, receive window and jitter of QUIC.
    #[serde(default)]
    pub tcp: TcpSettings,
    /// When it sends. Default: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Which links it crosses.
    #[serde(flatten)]
    pub route: Route,
}

/// How connections are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// HTTP/1.1: a request waits until a connection has nothing else to do.
    #[default]
    Http1,
    /// HTTP/2: one TCP connection to each host, with streams. A loss delays all that was sent after it.
    Http2,
    /// HTTP/3: one QUIC connection to each host, with streams. A loss delays only the streams whose data was lost.
    /// Simulated only.
    Http3,
}

fn page() -> String {
    "article".into()
}

fn connections() -> u32 {
    6
}

/// The smallest packet of QUIC without its headers: the first datagrams have 1200 bytes (RFC 9000 section 14.1), of
/// which packet header, tag and frame header take 35.
const SMALLEST: Bytes = Bytes(1200 - 35);

/// Browsers of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PageTraffic {
    page: Page,
    pub(crate) objects: Arc<Vec<Object>>,
    delay: Dur,
}

impl Page {
    fn check_quic(&self, at: &Slot<'_>, found: &mut Findings) {
        let hint = match at.role {
            Role::Foreground if at.backend != BackendKind::Simulated => Some(
                "write \"http2\", or run a program that has it, such as curl --http3, as a foreground with kind = \"program\"",
            ),
            Role::Background if at.stack != Stack::Simulated => {
                Some("write \"http2\", or leave run.background_stack out")
            }
            _ => None,
        };
        if let Some(hint) = hint {
            found.add(
                at.key("protocol"),
                "there is no QUIC over kernel sockets",
                hint,
            );
        }
        if !self.tls {
            found.add(
                at.key("tls"),
                "QUIC has no handshake without TLS",
                "leave out `tls`",
            );
        }
        if !is_quic(&self.tcp) {
            found.add(
                at.key("tcp"),
                "these are settings of TCP only",
                "HTTP/3 has `congestion` (cubic, newreno or bbr), `initial_window`, `initial_ssthresh`, `mss`, \
                 `receive_window` and `jitter`",
            );
        }
        if self.tcp.mss.is_some_and(|mss| mss < SMALLEST) {
            found.add(
                at.key("tcp.mss"),
                "QUIC needs a path that carries datagrams of 1200 bytes (RFC 9000 section 14)",
                "write 1165B or more: headers of UDP and QUIC take the other 35 bytes",
            );
        }
    }

    fn load(&self, base: &Path) -> Result<Input, Complaint> {
        let name = &self.page;
        let bundled = har::BUNDLED.iter().find(|page| page.0 == name);
        let (source, text) = match bundled {
            Some((_, text)) => (format!("bundled {name}"), (*text).to_owned()),
            None => {
                let path = base.join(name);
                let known = har::BUNDLED.map(|page| page.0).join(", ");
                let text = std::fs::read_to_string(&path).map_err(|e| {
                    let hint = format!("a HAR file as browsers save it, or one of {known}");
                    (format!("{}: {e}", path.display()), Some(hint))
                })?;
                let path = std::fs::canonicalize(&path).unwrap_or(path);
                (path.display().to_string(), text)
            }
        };
        let objects = har::objects(&text).map_err(|e| (format!("page `{name}`: {e}"), None))?;
        let bytes: u64 = objects.iter().map(|o| o.size).sum();
        let file = Path::new(&source).file_name();
        Ok(Input {
            facts: ModelFacts {
                name: file.map_or_else(|| name.clone(), |f| f.to_string_lossy().into_owned()),
                hash: Hash::new().part(text.as_bytes()).hex(),
                note: format!("{} objects of {} in all", objects.len(), Bytes(bytes)),
                source,
                warnings: Vec::new(),
            },
            data: Data::Page(Arc::new(objects)),
            // Do not copy an archive: it contains addresses and cookies of the person who recorded it.
            copy: None,
        })
    }
}

impl Keys for Page {
    reads!(name, active, route, delay);

    fn check(&self, at: &Slot<'_>, found: &mut Findings) {
        found.within(
            at.key("clients"),
            1..=100_000,
            self.clients,
            format!("{} browsers are out of range", self.clients),
            "write 1 to 100000",
        );
        found.within(
            at.key("connections"),
            1..=256,
            self.connections,
            format!(
                "{} connections to a host are out of range",
                self.connections
            ),
            "write 1 to 256; browsers have 6",
        );
        if self.every.is_some() && self.think != Dur::ZERO {
            found.add(
                at.key("think"),
                "pages begin at times of their own: there is no pause after one",
                "leave out `think` or `every`",
            );
        }
        let short = Dur::from_millis(100);
        if self.every.is_some_and(|every| every < short) {
            found.add(
                at.key("every"),
                "a page takes longer",
                "write 100ms or more",
            );
        }
        if self.protocol == Protocol::Http1 && self.incremental {
            found.add(
                at.key("incremental"),
                "a connection of HTTP/1.1 has one answer at a time",
                "leave out `incremental`, or write protocol = \"http2\"",
            );
        }
        if self.protocol == Protocol::Http3 {
            self.check_quic(at, found);
        }
        found.tcp(&at.key("tcp"), &self.tcp);
    }

    fn rateless(&self) -> Option<&'static str> {
        Some("waits for its answers: it has no rate to match")
    }

    fn reads(&self) -> Option<&'static str> {
        Some("page")
    }

    fn elsewhere(&mut self) -> Option<&mut String> {
        Some(&mut self.page)
    }

    fn read(&mut self, from: &Files<'_>) -> Result<Option<Input>, (&'static str, Complaint)> {
        let input = Page::load(self, from.base).map_err(|complaint| ("page", complaint))?;
        if !input.facts.source.starts_with("bundled ") {
            // Use the absolute path, because relative to the run directory it would name another file.
            self.page.clone_from(&input.facts.source);
        }
        Ok(Some(input))
    }

    fn resolve(&self, with: &Resolving<'_>) -> Option<Traffic> {
        let Some(Data::Page(objects)) = with.input else {
            return None;
        };
        Some(Arc::new(PageTraffic {
            page: self.clone(),
            objects: Arc::clone(objects),
            delay: with.delay,
        }))
    }

    fn measures(&self) -> Vec<Measure> {
        let mut all = vec![COMPLETION_TIME, FIRST_BYTE];
        // With `every`, the schedule decides how many pages there are, and not the network.
        if self.every.is_none() {
            all.push(REQUEST_RATE.never_alone());
        }
        all.push(FAILURES);
        all
    }

    fn failing(&self) -> Vec<Failing> {
        let given_up = |every: Dur| Failing::GivenUp(every.as_secs_f64());
        self.every.into_iter().map(given_up).collect()
    }

    fn clients(&self) -> u32 {
        self.clients
    }

    fn describe(&self, _: Role) -> String {
        let clients = if self.clients == 1 {
            "browser"
        } else {
            "browsers"
        };
        let pace = match (self.every, self.think) {
            (Some(every), _) => format!("every {every}"),
            (None, Dur::ZERO) => "one after the other".to_owned(),
            (None, think) => format!("{think} apart"),
        };
        let page = Path::new(&self.page).file_name();
        let page = page.map_or_else(String::new, |f| f.to_string_lossy().into_owned());
        let over = match self.protocol {
            Protocol::Http1 => format!("{} connections to a host", self.connections),
            Protocol::Http2 => "one connection to a host, with streams".to_owned(),
            Protocol::Http3 => "one QUIC connection to a host, with streams".to_owned(),
        };
        format!(
            "{} {clients}, page `{page}` {pace}, over {over}",
            self.clients
        )
    }
}

impl PageTraffic {
    fn opening(&self) -> Opening {
        match (self.page.protocol, self.page.tls) {
            (Protocol::Http3, _) => Opening::Quic,
            (_, true) => Opening::Tls,
            (_, false) => Opening::Tcp,
        }
    }

    /// The browsers, whose first page begins at `start`.
    fn browsers(&self, start: Dur) -> swell_workload::Page {
        let (page, access) = (&self.page, access(self.delay));
        let streams = page.protocol != Protocol::Http1;
        swell_workload::Page::new(PageConfig {
            objects: Arc::clone(&self.objects),
            connections: if streams { 1 } else { page.connections },
            streams,
            turns: page.incremental,
            opening: self.opening(),
            keep: page.keep,
            clients: page.clients,
            every: page.every,
            think: page.think,
            start,
            client: access,
            server: access,
        })
    }

    fn over_its_transport(&self, browsers: swell_workload::Page) -> Machine {
        let transport = match self.page.protocol {
            Protocol::Http3 => quic(&self.page.tcp),
            Protocol::Http1 | Protocol::Http2 => tcp(&self.page.tcp),
        };
        (Box::new(browsers), transport)
    }
}

impl Plays for PageTraffic {
    fn machine(&self, at: &Setting<'_>) -> Result<Option<Machine>, RunError> {
        let browsers = match at.role {
            Role::Foreground => self.browsers(at.warmup),
            Role::Background => {
                let between = self.page.every.unwrap_or(self.page.think);
                self.browsers(Dur::ZERO).spread(between, at.own_seed())
            }
        };
        Ok(Some(self.over_its_transport(browsers)))
    }

    fn over_sockets(&self, at: &Setting<'_>) -> Option<Machine> {
        // The kernel has no QUIC.
        let sockets = self.page.protocol != Protocol::Http3;
        sockets.then(|| self.over_its_transport(self.browsers(at.warmup)))
    }

    fn hello(&self) -> [u64; 2] {
        self.opening().hello()
    }

    fn class(&self, _: u32) -> String {
        "page".to_owned()
    }

    fn delay(&self) -> Dur {
        self.delay
    }

    fn fetches(&self) -> Option<Fetches> {
        let bytes = self.objects.iter().map(|o| o.size).sum();
        Some(Fetches {
            clients: self.page.clients,
            sizes: vec![Bytes(bytes)],
            think: self.page.every.unwrap_or(self.page.think),
            count: None,
        })
    }

    fn plausible(&self, at: &Setting<'_>) -> Plausible {
        let down = at.way.rates[1].bps() as f64;
        Plausible::of([down * 0.02, down * 0.5], 0.5)
    }
}
