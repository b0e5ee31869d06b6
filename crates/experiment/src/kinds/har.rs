//! Pages from HTTP archives (HAR 1.2): their objects, sizes and dependencies.

use std::collections::BTreeMap;

use serde::Deserialize;
use swell_base::Dur;
use swell_workload::Object;

/// Bundled pages, by name. They are synthetic, based on statistics of usual pages in the HTTP Archive.
pub(super) const BUNDLED: [(&str, &str); 4] = [
    (
        "article",
        include_str!("../../../../experiments/pages/article.har"),
    ),
    (
        "shop",
        include_str!("../../../../experiments/pages/shop.har"),
    ),
    ("app", include_str!("../../../../experiments/pages/app.har")),
    (
        "document",
        include_str!("../../../../experiments/pages/document.har"),
    ),
];

/// Maximum number of objects of a page.
const MOST: usize = 10_000;
/// Default sizes of request and response headers, bytes, if the archive does not give them.
const HEADERS: [i64; 2] = [500, 300];

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: String,
    #[serde(default)]
    time: f64,
    request: Request,
    response: Response,
    /// The object that referred to this one, as recorded by Chromium.
    #[serde(default, rename = "_initiator")]
    initiator: InitiatedBy,
    /// Where it was, instead of being fetched, as recorded by Chromium.
    #[serde(default, rename = "_fromCache")]
    from_cache: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    url: String,
    #[serde(default)]
    headers_size: i64,
    #[serde(default)]
    body_size: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    headers_size: i64,
    /// Zero if the answer had no body, as with status 304; -1 if it is not known (HAR 1.2).
    #[serde(default = "unknown")]
    body_size: i64,
    /// Bytes on the wire, as recorded by Chromium.
    #[serde(default, rename = "_transferSize")]
    transfer_size: Option<i64>,
    #[serde(default)]
    content: Content,
}

fn unknown() -> i64 {
    -1
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    size: i64,
}

/// The key is not one of HAR 1.2, so it may hold anything.
#[derive(Deserialize)]
#[serde(untagged)]
enum InitiatedBy {
    Known(Initiator),
    Other(serde::de::IgnoredAny),
}

impl Default for InitiatedBy {
    fn default() -> InitiatedBy {
        InitiatedBy::Other(serde::de::IgnoredAny)
    }
}

#[derive(Deserialize)]
struct Initiator {
    url: Option<String>,
    stack: Option<Stack>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stack {
    #[serde(default)]
    call_frames: Vec<Frame>,
    /// What scheduled this code: of a callback or a promise.
    #[serde(default)]
    parent: Option<Box<Stack>>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    url: String,
}

/// The objects of an archive, in the order of their requests. The parent of an object is the initiator in the archive
/// or, without one, the last object that had completed when it was requested. The time between the two is attributed to
/// the browser.
///
/// # Errors
/// A description of the problem.
pub(super) fn objects(text: &str) -> Result<Vec<Object>, String> {
    let archive: Archive = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut dated: Vec<(i64, Entry)> = Vec::new();
    for entry in archive.log.entries {
        // Only HTTP requests were fetched, not data: URLs or WebSocket connections, for example. Nor were objects from a
        // cache, of which the archive has the size all the same.
        let cached = entry.from_cache.is_some() || entry.response.transfer_size == Some(0);
        if entry.request.url.starts_with("http") && !cached {
            let start = nanoseconds(&entry.started_date_time)
                .ok_or_else(|| format!("`{}` is no time", entry.started_date_time))?;
            dated.push((start, entry));
        }
    }
    let earliest = dated.iter().map(|e| e.0).min().unwrap_or_default();
    let mut entries: Vec<(f64, Entry)> = (dated.into_iter())
        .map(|(at, entry)| (at.saturating_sub(earliest) as f64 / 1e6, entry))
        .collect();
    if entries.is_empty() || entries.len() > MOST {
        return Err(format!("{} objects are not 1 to {MOST}", entries.len()));
    }
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut named: BTreeMap<&str, u32> = BTreeMap::new();
    let mut objects = Vec::with_capacity(entries.len());
    for (i, (start, entry)) in entries.iter().enumerate() {
        let end = |j: u32| {
            let (began, earlier) = &entries[j as usize];
            began + earlier.time.max(0.0)
        };
        let parent = (entry.named_by()).find_map(|url| named.get(without_fragment(url)).copied());
        let parent = parent.or_else(|| {
            let there = (0..i as u32).filter(|&j| end(j) <= *start);
            // An object requested before any other had completed is a child of the page.
            there
                .max_by(|&a, &b| end(a).total_cmp(&end(b)))
                .or((i > 0).then_some(0))
        });
        let waited = parent.map_or(0.0, |j| (start - end(j)).max(0.0));
        let next = hosts.len() as u32;
        let (asked, answer) = (&entry.request, &entry.response);
        objects.push(Object {
            size: answer.size(),
            request: size(asked.headers_size, HEADERS[0], asked.body_size),
            parent,
            wait: Dur::from_secs_f64(waited / 1000.0),
            host: *hosts.entry(host(&asked.url)).or_insert(next),
        });
        let url = without_fragment(&asked.url);
        named.entry(url).or_insert(i as u32);
    }
    Ok(objects)
}

impl Entry {
    fn named_by(&self) -> impl Iterator<Item = &str> {
        let known = match &self.initiator {
            InitiatedBy::Known(initiator) => Some(initiator),
            InitiatedBy::Other(_) => None,
        };
        let urls = known.into_iter().filter_map(|i| i.url.as_deref());
        let innermost = known.and_then(|i| i.stack.as_ref());
        let stacks = std::iter::successors(innermost, |s| s.parent.as_deref());
        urls.chain(stacks.flat_map(|s| s.call_frames.iter().map(|f| &*f.url)))
    }
}

impl Response {
    fn size(&self) -> u64 {
        match self.transfer_size {
            Some(n) if n > 0 => n as u64,
            _ => {
                let body = if self.body_size >= 0 {
                    self.body_size
                } else {
                    self.content.size
                };
                size(self.headers_size, HEADERS[1], body)
            }
        }
    }
}

/// Size of headers and body. The archive has -1 for unknown sizes.
fn size(headers: i64, usual: i64, body: i64) -> u64 {
    let headers = if headers > 0 { headers } else { usual };
    headers.saturating_add(body.max(0)) as u64
}

/// A fragment is not requested, so an archive may have it in one of two places only.
fn without_fragment(url: &str) -> &str {
    url.split_once('#').map_or(url, |(url, _)| url)
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// Nanoseconds of an RFC 3339 time since 1970, UTC. Without an offset the time counts as UTC.
fn nanoseconds(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse().ok());
    let days = days(date.next()??, date.next()??, date.next()??)?;
    let (time, offset) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let mut parts = time.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds: f64 = parts.next()?.parse().ok()?;
    let east = match offset.split_at_checked(1) {
        None | Some(("Z", _)) => 0,
        Some((sign, digits)) => {
            // Some programs leave out the colon, or the minutes.
            let digits = digits.replace(':', "");
            let shown: i64 = digits.parse().ok()?;
            let minutes_east = match digits.len() {
                1 | 2 => shown * 60,
                _ => shown / 100 * 60 + shown % 100,
            };
            minutes_east * if sign == "-" { -1 } else { 1 }
        }
    };
    let fits = (0..=24).contains(&hours) && (0..60).contains(&minutes) && east.abs() < 24 * 60;
    if !fits || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let minutes = (days * 24 + hours) * 60 + minutes - east;
    let whole = minutes.checked_mul(60_000_000_000)?;
    whole.checked_add((seconds * 1e9).round() as i64)
}

/// Days of the Gregorian calendar from 1970 to this day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let valid = (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // Years begin in March, so that a leap day is the last of its year and months before it have 153 days in five.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 1 March of year 0 is 719468 days before 1970.
    valid.then(|| 365 * year + leap + (153 * month + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(url: &str, start: &str, time: u32, rest: &str) -> String {
        format!(
            r#"{{"startedDateTime": "2024-05-01T10:00:{start}Z", "time": {time},
                "request": {{"url": "{url}", "headersSize": 400, "bodySize": 0}},
                "response": {{"headersSize": 200, "bodySize": 1000}}{rest}}}"#
        )
    }

    fn read(entries: &[String]) -> Result<Vec<Object>, String> {
        objects(&format!(
            r#"{{"log": {{"entries": [{}]}}}}"#,
            entries.join(",")
        ))
    }

    #[test]
    fn objects_are_named_by_what_the_archive_says_or_by_what_came_last() {
        let by = r#", "_initiator": {"type": "script", "stack": {"callFrames": [{"url": "https://a/s.js"}]}}"#;
        let found = read(&[
            entry("https://a/", "00.000", 100, ""),
            entry("https://b/late.png", "00.400", 50, by),
            entry("https://a/s.js", "00.120", 80, ""),
            entry("https://a/early.css", "00.050", 100, ""),
            entry("https://a/next.png", "00.250", 10, ""),
            entry("data:image/png;base64,AAAA", "00.300", 0, ""),
        ])
        .expect("an archive");
        let ms = Dur::from_millis;
        let summary = |o: &Object| (o.parent, o.wait, o.host);
        // Sorted by start: the page, the style sheet, the script, a later object, the child of the script.
        assert_eq!(
            found.iter().map(summary).collect::<Vec<_>>(),
            [
                (None, Dur::ZERO, 0),
                (Some(0), Dur::ZERO, 0),
                (Some(0), ms(20), 0),
                (Some(2), ms(50), 0),
                (Some(2), ms(200), 1),
            ]
        );
        assert!(found.iter().all(|o| (o.size, o.request) == (1200, 400)));
    }

    /// Chromium records the frames of a callback, and in `parent` those of the code that scheduled it.
    #[test]
    fn a_callback_is_of_the_script_that_scheduled_it() {
        let callback = r#", "_initiator": {"type": "script", "stack": {"callFrames": [{"url": ""}], "parent":
            {"description": "setTimeout", "callFrames": [], "parent": {"callFrames": [{"url": "https://a/s.js"}]}}}}"#;
        let parser = r#", "_initiator": {"type": "parser", "url": "https://a/#top"}"#;
        let found = read(&[
            entry("https://a/", "00.000", 100, ""),
            entry("https://a/s.js", "00.120", 80, ""),
            entry("https://a/other.css", "00.130", 100, ""),
            entry("https://a/later.png", "00.400", 50, callback),
            entry("https://a/image.png", "00.500", 50, parser),
        ])
        .expect("an archive");
        let parents: Vec<_> = found.iter().map(|o| o.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(0), Some(1), Some(0)]);
    }

    /// A page loads across the end of a month, or its objects are dated in another time zone.
    #[test]
    fn times_have_a_date_and_an_offset() {
        let at = |text: &str| nanoseconds(text).map(|ns| ns / 1_000_000);
        assert_eq!(at("1970-01-01T00:00:00.5Z"), Some(500));
        assert_eq!(at("2024-02-29T12:00:00Z"), Some(1_709_208_000_000));
        assert_eq!(at("2000-03-01T00:00:00"), Some(951_868_800_000));
        for same in [
            "2024-05-01T01:30:00+02:00",
            "2024-04-30T19:30:00-0400",
            "2024-05-01T01:30:00+02",
        ] {
            assert_eq!(at(same), at("2024-04-30T23:30:00.000Z"), "{same}");
        }
        for no in [
            "2024-13-01T00:00:00Z",
            "2024-01-01",
            "2024-01-01T25:00:00Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert_eq!(at(no), None, "{no}");
        }
        let across = [
            entry("https://a/", "59.000", 500, "").replace("2024-05-01T10:00", "2024-04-30T23:59"),
            entry("https://a/s.js", "00.000", 80, "").replace("T10:00", "T00:00"),
        ];
        let found = read(&across).expect("an archive");
        assert_eq!(found[1].wait, Dur::from_millis(500));
        assert_eq!((found[0].parent, found[1].parent), (None, Some(0)));
    }

    /// The archive of a second visit has the sizes of what came from the cache.
    #[test]
    fn what_came_from_a_cache_was_not_fetched() {
        let by = r#", "_initiator": {"url": "https://a/cached.js"}"#;
        let sizes = |of: &str| entry("https://a/cached.js", "00.120", 80, of);
        let both = [
            sizes(r#", "_fromCache": "disk""#),
            sizes("").replace("\"response\": {", "\"response\": {\"_transferSize\": 0, "),
        ];
        for cached in both {
            let found = read(&[
                entry("https://a/", "00.000", 100, ""),
                cached,
                entry("https://a/late.png", "00.400", 50, by),
            ])
            .expect("an archive");
            let parents: Vec<_> = found.iter().map(|o| o.parent).collect();
            assert_eq!(parents, [None, Some(0)]);
            assert_eq!(found[1].wait, Dur::from_millis(300));
        }
    }

    #[test]
    fn what_is_no_archive_is_refused_in_words() {
        assert!(objects("{}").is_err());
        assert!(read(&[]).unwrap_err().contains("0 objects"));
        assert!(read(&[entry("https://a/", "x", 1, "")]).is_err());
        // Unknown sizes, and invalid ones.
        let odd = r#", "_initiator": {"url": "https://a/"}"#;
        let found = read(&[entry("https://a/", "00.0", 1, odd).replace("1000", "-1")]);
        assert_eq!(found.map(|o| (o[0].size, o[0].parent)), Ok((200, None)));
    }

    #[test]
    fn an_answer_without_a_body_has_the_size_of_its_headers() {
        let sized = |body: &str| {
            let answer = entry("https://a/", "00.0", 1, "");
            let content = format!("{body}\"content\": {{\"size\": 50000}}");
            let answer = answer.replace("\"bodySize\": 1000", &content);
            read(&[answer]).map(|objects| objects[0].size)
        };
        assert_eq!(sized("\"bodySize\": 0, "), Ok(200));
        assert_eq!(sized("\"bodySize\": -1, "), Ok(50_200));
        assert_eq!(sized(""), Ok(50_200));
    }

    #[test]
    fn an_initiator_of_any_form_is_no_reason_to_refuse_the_archive() {
        for of in [
            "null",
            "\"parser\"",
            "[1]",
            "{\"stack\": \"x\"}",
            "{\"url\": 1}",
        ] {
            let by = format!(", \"_initiator\": {of}");
            let found = read(&[
                entry("https://a/", "00.000", 100, ""),
                entry("https://a/s.js", "00.120", 80, &by),
            ]);
            assert_eq!(found.map(|o| o[1].parent), Ok(Some(0)), "{of}");
        }
    }

    #[test]
    fn bundled_pages_are_pages() {
        let of_many = BUNDLED.into_iter().filter(|page| page.0 != "document");
        for (name, text) in of_many {
            let all = objects(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let bytes: u64 = all.iter().map(|o| o.size).sum();
            assert!((500_000..5_000_000).contains(&bytes), "{name}: {bytes}");
            assert!(all.len() >= 10, "{name}");
            assert!(all.iter().skip(1).all(|o| o.parent.is_some()), "{name}");
        }
        let document = BUNDLED.into_iter().find(|page| page.0 == "document");
        let document = objects(document.expect("it is there").1).expect("a page");
        let sizes: Vec<u64> = document.iter().map(|o| o.size).collect();
        assert_eq!(sizes, [100_000]);
    }
}
