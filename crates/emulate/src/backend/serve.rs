//! A small HTTP server for hosts without a server program. It serves the files of a directory and objects of any
//! size.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior};
use tower_http::services::ServeDir;

use swell_host::Host;

/// The ports of the service names `http` and `https`.
const PORT: u16 = 80;
const PORT_TLS: u16 = 443;

#[cfg(feature = "http3")]
mod http3;

/// An HTTP server that runs on a thread of its own.
pub struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves IPv4 and IPv6 on a host: HTTP/1.1 and HTTP/2 on TCP port 80, HTTP/3 on UDP port 443. `/1MB` returns a
    /// megabyte of zeros, unless the directory has a file of that name.
    ///
    /// # Errors
    /// If a port is taken, or the operating system refuses to create a thread.
    pub fn start(host: &Host, directory: PathBuf) -> io::Result<Serving> {
        let any = Ipv6Addr::UNSPECIFIED;
        let bind = || {
            // A port that is open but silent would let clients wait.
            let quic = cfg!(feature = "http3").then(|| UdpSocket::bind((any, PORT_TLS)));
            Ok::<_, io::Error>((TcpListener::bind((any, PORT))?, quic.transpose()?))
        };
        let (listener, quic) = host.enter(bind)??;
        Serving::on(listener, quic, directory)
    }

    #[cfg_attr(not(feature = "http3"), expect(unused_variables))]
    fn on(
        listener: TcpListener,
        quic: Option<UdpSocket>,
        directory: PathBuf,
    ) -> io::Result<Serving> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(socket) = tokio::net::TcpListener::from_std(listener) else {
                        return;
                    };
                    let files = ServeDir::new(directory)
                        .call_fallback_on_method_not_allowed(true)
                        .fallback(any(object));
                    let router = Router::new().fallback_service(files);
                    // It ends with the runtime.
                    #[cfg(feature = "http3")]
                    if let Some(quic) = quic {
                        tokio::spawn(http3::serve(quic, router.clone()));
                    }
                    let serve = axum::serve(socket, router);
                    tokio::select! {
                        _ = serve.into_future() => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Serving {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Stops the server and aborts transfers in progress.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The server may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

/// An object whose name is its size. The query modifies the response: `chunked` omits its length, `wait=100ms` delays
/// its beginning, `over=10s` spreads it evenly over that time. The request's body is read to its end first.
async fn object(request: Request) -> Response {
    let (head, body) = request.into_parts();
    let sent = match received(body).await {
        Ok(sent) => sent,
        Err(e) => return (StatusCode::BAD_REQUEST, format!("{e}\n")).into_response(),
    };
    let name = head.uri.path().trim_matches('/');
    if name.is_empty() {
        return match head.method {
            Method::GET | Method::HEAD => HELP.into_response(),
            _ => format!("{sent}\n").into_response(),
        };
    }
    let Ok(size) = name.parse::<swell_base::Bytes>() else {
        // Uploads may use any name.
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return format!("{sent}\n").into_response();
        }
        let text = format!(
            "there is no file {name} in the served directory, and it is not a size such as 1MB\n"
        );
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let way = match Way::of(head.uri.query().unwrap_or_default()) {
        Ok(way) => way,
        Err(e) => return (StatusCode::BAD_REQUEST, e).into_response(),
    };
    let range = match head.method {
        Method::GET => head.headers.get(header::RANGE),
        // Ranges are defined for GET alone (RFC 9110 section 14.2).
        _ => None,
    };
    let range = range.and_then(|r| r.to_str().ok());
    let (first, length, status) = match range.and_then(|r| part(r, size.0)) {
        None => (0, size.0, StatusCode::OK),
        Some(Some((first, length))) => (first, length, StatusCode::PARTIAL_CONTENT),
        Some(None) => {
            let whole = format!("bytes */{}", size.0);
            return (
                StatusCode::RANGE_NOT_SATISFIABLE,
                [(header::CONTENT_RANGE, whole)],
            )
                .into_response();
        }
    };
    if way.wait > Duration::ZERO {
        tokio::time::sleep(way.wait).await;
    }
    let mut response = Response::new(Body::new(Zeros::new(length, &way)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/octet-stream"),
    );
    if status == StatusCode::PARTIAL_CONTENT
        && let Ok(shown) = format!("bytes {first}-{}/{}", first + length - 1, size.0).parse()
    {
        headers.insert(header::CONTENT_RANGE, shown);
    }
    response
}

/// The response to `/` if the directory has no index.html.
const HELP: &str = "This is the built-in server of swell.
/1MB               a megabyte of zeros, or any other size; Range works
/1MB?chunked       without its length
/1MB?wait=100ms    the answer begins later
/1MB?over=10s      spread evenly over that time
/NAME              a file of the current directory
POST or PUT /...   the body is read, and its bytes counted
";

/// Reads a body to its end and counts its bytes.
async fn received(mut body: Body) -> Result<u64, axum::Error> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, |d| d.len() as u64);
    }
    Ok(bytes)
}

/// The requested part of an object of `size` bytes (RFC 9110 section 14.1.2): first byte and length. `None` sends the
/// whole object: for an invalid range, such as one that ends before it begins, and for several ranges, which may be
/// ignored. `Some(None)` means that no such range exists.
fn part(range: &str, size: u64) -> Option<Option<(u64, u64)>> {
    let (unit, set) = range.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    // Numbers have no sign, which `parse` would accept.
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !text.starts_with('+'));
    let (first, end) = match (first.is_empty(), last.is_empty()) {
        (true, _) => (size.saturating_sub(number(last)?), size),
        (false, true) => (number(first)?, size),
        (false, false) => {
            let (from, to) = (number(first)?, number(last)?);
            if to < from {
                return None;
            }
            (from, to.saturating_add(1).min(size))
        }
    };
    Some((first < end).then(|| (first, end - first)))
}

/// How an object is sent, from its query.
#[derive(Default)]
struct Way {
    chunked: bool,
    wait: Duration,
    over: Duration,
}

impl Way {
    fn of(query: &str) -> Result<Way, String> {
        let mut way = Way::default();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let time = || {
                let span = value.parse::<swell_base::Dur>();
                let span = span.map_err(|e| format!("{key}: {e}\n"))?;
                Ok::<_, String>(Duration::from_nanos(span.as_nanos()))
            };
            match key {
                "chunked" => way.chunked = true,
                "wait" => way.wait = time()?,
                "over" => way.over = time()?,
                // Web pages append arbitrary parameters to bypass caches.
                _ => {}
            }
        }
        Ok(way)
    }
}

/// A body of zeros.
struct Zeros {
    left: u64,
    /// The length is not announced.
    chunked: bool,
    /// Bytes of a piece, and the interval between pieces.
    piece: u64,
    pause: Option<Interval>,
}

static CHUNK: [u8; 65_536] = [0; 65_536];

/// Minimum interval between the pieces of a body that is spread over time.
const PIECE: Duration = Duration::from_millis(10);

impl Zeros {
    fn new(length: u64, way: &Way) -> Zeros {
        let most = (way.over.as_nanos() / PIECE.as_nanos()).clamp(1, u128::from(length.max(1)));
        let pieces = u64::try_from(most).unwrap_or(u64::MAX);
        let pause = (way.over > Duration::ZERO && length > 0).then(|| {
            let mut pause =
                tokio::time::interval(way.over.div_f64(pieces as f64).max(Duration::from_nanos(1)));
            // A late piece does not delay the following ones.
            pause.set_missed_tick_behavior(MissedTickBehavior::Burst);
            pause
        });
        Zeros {
            left: length,
            chunked: way.chunked,
            piece: length.div_ceil(pieces).max(1),
            pause,
        }
    }
}

impl http_body::Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut most = CHUNK.len() as u64;
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.poll_tick(context));
            most = most.min(self.piece);
        }
        let n = self.left.min(most);
        self.left -= n;
        let bytes = Bytes::from_static(&CHUNK[..n as usize]);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self.chunked {
            true => SizeHint::default(),
            false => SizeHint::with_exact(self.left),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::Serving;

    #[test]
    fn files_are_served_before_sizes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("2kB"), "a file").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _serving = Serving::on(listener, None, dir.path().into()).unwrap();
        let get = |path: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (head[9..12].to_owned(), body.to_owned())
        };
        assert_eq!(get("/3kB"), ("200".into(), "\0".repeat(3000)));
        assert_eq!(get("/2kB"), ("200".into(), "a file".into()));
        let (status, body) = get("/nothing");
        assert_eq!(status, "404");
        assert!(body.contains("no file nothing"), "{body}");
        assert_eq!(get("/../../etc/passwd").0, "404");
        let (found, page) = get("/");
        assert!(found == "200" && page.contains("built-in server"), "{page}");
        assert_eq!(get("/1kB?wait=soon").0, "400");
    }

    /// Sends a request and returns the response's head and body.
    fn exchange(request: &str) -> (String, String) {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _serving = Serving::on(listener, None, dir.path().into()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_ascii_lowercase(), body.to_owned())
    }

    #[test]
    fn parts_of_an_object_come_alone() {
        let asked = |range: &str| {
            exchange(&format!(
                "GET /1kB HTTP/1.1\r\nHost: server\r\nConnection: close\r\nRange: {range}\r\n\r\n"
            ))
        };
        let (head, body) = asked("bytes=990-2000");
        assert!(
            head.starts_with("http/1.1 206") && head.contains("content-range: bytes 990-999/1000"),
            "{head}"
        );
        assert_eq!(body.len(), 10);
        assert_eq!(asked("bytes=-7").1.len(), 7);
        assert_eq!(asked("bytes=5-").1.len(), 995);
        assert_eq!(asked("Bytes=5-9").1.len(), 5);
        for range in ["bytes=1000-", "bytes=1000-2000", "bytes=-0"] {
            let (none, _) = asked(range);
            assert!(none.starts_with("http/1.1 416"), "{range}: {none}");
            assert!(
                none.contains("content-range: bytes */1000"),
                "{range}: {none}"
            );
        }
        // A Range header that is not a valid byte range is ignored (RFC 9110 sections 14.1.1 and 14.2).
        for range in [
            "lines=1-2",
            "bytes=0-1,5-6",
            "bytes=5-2",
            "bytes=2000-1500",
            "bytes=+5-7",
            "bytes=-",
            "bytes=a-b",
        ] {
            assert_eq!(asked(range).1.len(), 1000, "{range}");
        }
        // So is one of another method than GET.
        let (other, _) = exchange(
            "HEAD /1kB HTTP/1.1\r\nHost: server\r\nConnection: close\r\nRange: bytes=5-9\r\n\r\n",
        );
        assert!(other.starts_with("http/1.1 200"), "{other}");
    }

    #[test]
    fn what_is_sent_is_read_and_counted_and_lengths_can_be_hidden() {
        let sent = "x".repeat(5000);
        let post = format!(
            "POST /upload HTTP/1.1\r\nHost: s\r\nConnection: close\r\nContent-Length: 5000\r\n\r\n{sent}"
        );
        assert_eq!(exchange(&post).1, "5000\n");
        let (head, body) =
            exchange("GET /10kB?chunked HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n");
        assert!(
            head.contains("transfer-encoding: chunked") && !head.contains("content-length"),
            "{head}"
        );
        assert!(body.len() > 10_000);
        let begun = std::time::Instant::now();
        let (_, slow) = exchange("GET /10kB?over=200ms&wait=100ms HTTP/1.0\r\n\r\n");
        assert_eq!(slow.len(), 10_000);
        // Never early. An upper bound would depend on the machine.
        assert!(begun.elapsed() >= std::time::Duration::from_millis(280));
    }

    #[test]
    fn the_second_version_is_spoken_without_being_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _serving = Serving::on(listener, None, std::env::temp_dir()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        // RFC 9113 section 3.4: the client sends the preface and an empty SETTINGS frame; the server replies with its
        // own.
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .unwrap();
        let mut frame = [0; 9];
        stream.read_exact(&mut frame).unwrap();
        assert_eq!(frame[3], 4, "{frame:?}");
    }
}
