//! Configurations of the program released in 2005: one XML document for its client and one for its server,
//! with elements that contain lists of numbers. Chapter 4 of its manual describes the format.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use roxmltree::{Document, Node};
use swell_base::{Code, Dur, Stream, Warning};

use super::histogram::Histogram;
use super::law::{Law, Sizes};
use super::model::{
    FlowModel, FlowTotals, Interval, MAX_INTERVALS, Popularity, Profile, TcpSessions,
};
use super::record::nanos;
use crate::file::MAX_BYTES;
use crate::model::Provenance;

/// Maximum length of a written list. The numbers are quantiles, so a longer list would add little.
const LONGEST: u64 = 100_000;
/// Lines of a written address pool. Weights are expressed by repetition, so this is the resolution of
/// popularity.
const LINES: u64 = 4_096;
/// The program's sizes are signed 32-bit integers.
const LARGEST: f64 = 2_147_483_647.0;
/// Larger floating-point numbers are not exact integers.
const WHOLE: f64 = 9_007_199_254_740_992.0;
/// Largest accepted number of sessions.
const MOST_SESSIONS: f64 = 1e9;

/// Why a configuration gives no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// Too long.
    #[error("more than {MAX_BYTES} bytes of XML")]
    TooLarge,
    /// Not XML, or XML with a document type, which configurations do not have.
    #[error("{0}")]
    Syntax(String),
    /// Another kind of document.
    #[error(
        "the root element is <{0}>, not <harpoon_plugins>: this is not a configuration of Harpoon"
    )]
    Other(String),
    /// A list or an attribute with an invalid value.
    #[error("line {line}: {what}: `{text}` is not {wanted}")]
    Value {
        /// Line of the element.
        line: u32,
        /// Its name.
        what: String,
        /// The invalid text.
        text: String,
        /// What is expected.
        wanted: &'static str,
    },
    /// A required list is missing.
    #[error(
        "no list <{0}> in a TCP plugin: the client's configuration has <active_sessions> and \
         <interconnection_times>, the server's <file_sizes>; give both files, and any that a \
         <config_file> names"
    )]
    Missing(&'static str),
    /// Too many intervals, or longer than times can represent.
    #[error("{0} intervals are more than {MAX_INTERVALS}, or longer than three centuries")]
    Intervals(usize),
}

/// The lists of all configurations together.
#[derive(Default)]
struct Lists {
    sizes: Histogram,
    gaps: Histogram,
    sessions: Vec<u64>,
    /// Of sources and of destinations.
    pools: [Vec<(u64, u64)>; 2],
    left_out: Vec<String>,
}

impl FlowModel {
    /// Whether a text is a configuration of the released program; it may be damaged.
    pub fn is_harpoon(text: &[u8]) -> bool {
        let head = String::from_utf8_lossy(&text[..text.len().min(4_096)]);
        head.trim_start_matches('\u{feff}')
            .trim_start()
            .starts_with('<')
            && head.contains("<harpoon_plugins")
    }

    /// The model that configurations of the released program describe together: its client's and its
    /// server's. They do not contain the length of an interval (`-w` of the program, 60 s by default). UDP
    /// plugins are left out, with a warning.
    ///
    /// # Errors
    /// Says where and why. Never panics.
    pub fn from_harpoon(
        texts: &[&str],
        name: &str,
        provenance: Provenance,
        interval: Dur,
    ) -> Result<FlowModel, XmlError> {
        let mut lists = Lists::default();
        for text in texts {
            lists.read(text)?;
        }
        let missing = [
            ("file_sizes", lists.sizes.is_empty()),
            ("interconnection_times", lists.gaps.is_empty()),
            ("active_sessions", lists.sessions.is_empty()),
        ];
        if let Some((list, _)) = missing.into_iter().find(|m| m.1) {
            return Err(XmlError::Missing(list));
        }
        let n = lists.sessions.len();
        let interval = Dur::from_micros((interval.as_nanos() / 1_000).max(1));
        let end = nanos(interval).checked_mul(n as i64);
        let Some(end) = end.filter(|_| n <= MAX_INTERVALS) else {
            return Err(XmlError::Intervals(n));
        };
        let [sources, destinations] = lists.pools.map(popularity);
        let down = Sizes {
            complete: lists.sizes,
            censored: Histogram::default(),
        };
        let mut model = FlowModel {
            name: name.to_string(),
            provenance,
            warnings: Vec::new(),
            profile: Profile::Harpoon,
            interval,
            start: 0,
            span: [0, end],
            totals: FlowTotals::default(),
            sampled: Vec::new(),
            tcp: TcpSessions {
                up: Sizes::default(),
                down,
                gaps: lists.gaps,
                sources,
                destinations,
                rates: Histogram::default(),
                rates_by_size: Default::default(),
                intervals: Vec::new(),
            },
            udp: Vec::new(),
        };
        // What its sessions carry if they keep to their schedule.
        let carries = model.session_bytes().unwrap_or(0.0);
        let size = model.tcp.down.law().map_or(1.0, |l| l.mean()).max(1e-9);
        let played = |sessions: u64| Interval {
            connections: (sessions as f64 * carries / size) as u64,
            bytes: (sessions as f64 * carries) as u64,
            seen: sessions,
            sessions,
        };
        model.tcp.intervals = lists.sessions.into_iter().map(played).collect();
        if !lists.left_out.is_empty() {
            model.warnings.push(Warning::warning(
                Code::PluginsLeftOut,
                format!(
                    "of plugins other than TCP's nothing is taken: {}",
                    lists.left_out.join(", ")
                ),
            ));
        }
        Ok(model)
    }

    /// The released program's configurations for this model: its client's and its server's. `pools` are
    /// the first addresses of sources and destinations; the most popular rank gets the first one.
    ///
    /// The program supports no files from clients to servers, no datagrams of this model's kinds and no
    /// sizes above 2 GiB. They are left out or limited.
    pub fn to_harpoon(&self, pools: [Ipv4Addr; 2]) -> [String; 2] {
        let most = self.tcp.intervals.iter().map(|i| i.sessions).max();
        let plugin = |personality: &str, threads: u64, inside: &str| {
            format!(
                "<harpoon_plugins>\n<plugin name=\"TcpPlugin\" objfile=\"tcp_plugin.so\" maxthreads=\"{threads}\" \
                 personality=\"{personality}\">\n{inside}</plugin>\n</harpoon_plugins>\n"
            )
        };
        let sessions = self.tcp.intervals.iter().map(|i| i.sessions.to_string());
        let gaps = self.gap_law().map_or(Vec::new(), |law| {
            values(&law, self.tcp.gaps.count(), "gaps")
        });
        let client = [
            list("active_sessions", sessions),
            list(
                "interconnection_times",
                gaps.into_iter().map(|g| format!("{:.6}", g / 1e6)),
            ),
            pool("client_source_pool", pools[0], 0, &self.tcp.sources),
            pool(
                "client_destination_pool",
                pools[1],
                10_000,
                &self.tcp.destinations,
            ),
        ];
        let sizes = self.tcp.down.law().map_or(Vec::new(), |law| {
            values(&law, self.tcp.down.count(), "sizes")
        });
        let whole = |size: f64| format!("{:.0}", size.clamp(1.0, LARGEST));
        let server = [
            list("file_sizes", sizes.into_iter().map(whole)),
            format!(
                "<address_pool name=\"server_pool\">\n<address ipv4=\"{}/32\" port=\"10000\"/>\n</address_pool>\n",
                pools[1]
            ),
        ];
        [
            plugin("client", most.unwrap_or(0).max(1), &client.concat()),
            // As the program's own configurator writes.
            plugin("server", 47, &server.concat()),
        ]
    }
}

impl Lists {
    fn read(&mut self, text: &str) -> Result<(), XmlError> {
        if text.len() > MAX_BYTES {
            return Err(XmlError::TooLarge);
        }
        let document = Document::parse(text).map_err(|e| XmlError::Syntax(e.to_string()))?;
        let root = document.root_element();
        if root.tag_name().name() != "harpoon_plugins" {
            let name = root.tag_name().name().chars().take(40).collect();
            return Err(XmlError::Other(name));
        }
        for plugin in root.children().filter(|n| n.tag_name().name() == "plugin") {
            let object = plugin.attribute("objfile").unwrap_or("");
            // Infinite sources have no sizes.
            if !object.contains("tcp_plugin") || object.contains("inf") {
                let name = plugin.attribute("name").unwrap_or(object);
                self.left_out.push(name.chars().take(40).collect());
                continue;
            }
            for element in plugin.children().filter(Node::is_element) {
                match element.tag_name().name() {
                    "file_sizes" => numbers(&element, WHOLE, |x| self.sizes.add((x + 0.5) as u64))?,
                    "interconnection_times" => {
                        numbers(&element, WHOLE / 1e6, |x| {
                            self.gaps.add((x * 1e6 + 0.5) as u64)
                        })?;
                    }
                    "active_sessions" => {
                        numbers(&element, MOST_SESSIONS, |x| self.sessions.push(x as u64))?;
                    }
                    "address_pool" => self.pool(&element)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Reads the hosts of a pool. Each line of a prefix adds one to the weight of its hosts.
    fn pool(&mut self, element: &Node<'_, '_>) -> Result<(), XmlError> {
        let which = match element.attribute("name") {
            Some("client_source_pool") => 0,
            Some("client_destination_pool") => 1,
            _ => return Ok(()),
        };
        let mut repeated = std::collections::BTreeMap::new();
        for address in element.children().filter(Node::is_element) {
            let given = address.attribute("ipv4").or(address.attribute("ipv6"));
            let text = given.unwrap_or("");
            let Some((length, network)) = prefix(text) else {
                let wanted = "an IPv4 or IPv6 address or prefix";
                return Err(invalid(&address, text, wanted));
            };
            *repeated.entry((length, network)).or_insert(0u64) += 1;
        }
        let pool = &mut self.pools[which];
        pool.extend(
            repeated
                .into_iter()
                .map(|((length, _), n)| (n, length.hosts())),
        );
        Ok(())
    }
}

/// Length of a prefix, by family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Length {
    Four(u32),
    Six(u32),
}

/// Length and network of an address or prefix. IPv6 is an extension: the released program supports `ipv4`
/// alone.
fn prefix(text: &str) -> Option<(Length, u128)> {
    let (host, length) = match text.split_once('/') {
        Some((host, length)) => (host, Some(length.parse::<u32>().ok()?)),
        None => (text, None),
    };
    match host.parse::<IpAddr>().ok()? {
        IpAddr::V4(a) => {
            let free = 32u32.checked_sub(length.unwrap_or(32))?;
            let network = u64::from(a.to_bits()) >> free;
            Some((Length::Four(32 - free), network.into()))
        }
        IpAddr::V6(a) => {
            let free = 128u32.checked_sub(length.unwrap_or(128))?;
            let network = a.to_bits().checked_shr(free).unwrap_or(0);
            Some((Length::Six(128 - free), network))
        }
    }
}

impl Length {
    /// Number of addresses that the program draws from a prefix. For IPv4, none that ends in 0 or 255,
    /// unless it is the only one. For IPv6 at most 2^32, more than any model has.
    fn hosts(self) -> u64 {
        match self {
            Length::Four(length @ 0..=24) => 254 << (24 - length),
            Length::Four(32) => 1,
            // The first or the last address of a /24 may be among them: one host more or less.
            Length::Four(length) => 1 << (32 - length),
            Length::Six(length) => 1 << (128 - length).min(32),
        }
    }
}

/// Popularity from (weight, number of hosts), in any order.
fn popularity(mut pool: Vec<(u64, u64)>) -> Popularity {
    pool.sort_unstable_by_key(|p| std::cmp::Reverse(p.0));
    let mut ranks: Vec<(u64, u64)> = Vec::new();
    for (weight, hosts) in pool {
        match ranks.last_mut() {
            Some(last) if last.0 == weight => last.1 += hosts,
            _ => ranks.push((weight, hosts)),
        }
    }
    Popularity { ranks }
}

/// Passes every number of an element to `take`. Unlike the program, it needs no white space after the last
/// one.
fn numbers(element: &Node<'_, '_>, most: f64, mut take: impl FnMut(f64)) -> Result<(), XmlError> {
    for text in element
        .children()
        .filter(Node::is_text)
        .filter_map(|n| n.text())
    {
        for word in text.split_ascii_whitespace() {
            match word.parse::<f64>() {
                Ok(x) if (0.0..=most).contains(&x) => take(x),
                _ => {
                    return Err(invalid(
                        element,
                        word,
                        "a number, at least 0 and not too large",
                    ));
                }
            }
        }
    }
    Ok(())
}

fn invalid(element: &Node<'_, '_>, text: &str, wanted: &'static str) -> XmlError {
    XmlError::Value {
        line: element.document().text_pos_at(element.range().start).row,
        what: element.tag_name().name().chars().take(40).collect(),
        text: text.chars().take(40).collect(),
        wanted,
    }
}

/// Equally likely values of a distribution, at most as many as it was made of, in random order, because
/// the program walks along its lists.
fn values(law: &Law, count: u64, what: &str) -> Vec<f64> {
    let n = count.clamp(1, LONGEST);
    let mut values: Vec<f64> = (0..n)
        .map(|i| law.quantile((i as f64 + 0.5) / n as f64))
        .collect();
    Stream::new(1, what).shuffle(&mut values);
    values
}

fn list(name: &str, values: impl Iterator<Item = String>) -> String {
    let mut out = format!("<{name}>\n");
    for value in values {
        // Writing to a String cannot fail. The program drops a number without white space after it.
        let _ = writeln!(out, "{value}");
    }
    out + &format!("</{name}>\n")
}

/// One address per host, from `first` on, repeated in proportion to its popularity.
fn pool(name: &str, first: Ipv4Addr, port: u16, popularity: &Popularity) -> String {
    let mut out = format!("<address_pool name=\"{name}\">\n");
    let total = popularity.total().max(1);
    let mut address = first.to_bits();
    let mut written = 0;
    let hosts = popularity
        .ranks
        .iter()
        .flat_map(|&(count, n)| (0..n).map(move |_| count));
    for count in hosts {
        if written >= 2 * LINES {
            break;
        }
        // The program redraws such addresses, forever if there is no other.
        while matches!(address & 0xff, 0 | 0xff) {
            address = address.wrapping_add(1);
        }
        let share = count as f64 / total as f64;
        let weight = (share * LINES as f64 + 0.5).max(1.0) as u64;
        for _ in 0..weight {
            let line = Ipv4Addr::from_bits(address);
            let _ = writeln!(out, "<address ipv4=\"{line}/32\" port=\"{port}\"/>");
        }
        written += weight;
        address = address.wrapping_add(1);
    }
    out + "</address_pool>\n"
}

#[cfg(test)]
mod tests;
