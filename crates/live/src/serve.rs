//! A small HTTP server for a host that has none: files of a directory, and objects of any size.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv6Addr, TcpListener};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;
use tower_http::services::ServeDir;

use crate::host::Host;

/// The port that `http` stands for.
const PORT: u16 = 80;

/// A server that runs on a thread of its own.
pub struct Serving {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Serves on port 80 of a host, both families: `/1MB` gives a megabyte of zeros, unless the
    /// directory has a file of that name.
    ///
    /// # Errors
    /// Where the port is taken, or the operating system refuses a thread.
    pub fn start(host: &Host, directory: PathBuf) -> io::Result<Serving> {
        let listener = host.enter(|| TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)))??;
        Serving::on(listener, directory)
    }

    fn on(listener: TcpListener, directory: PathBuf) -> io::Result<Serving> {
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                runtime.block_on(async {
                    let Ok(socket) = tokio::net::TcpListener::from_std(listener) else {
                        return;
                    };
                    let files = ServeDir::new(directory).fallback(get(object));
                    let serve = axum::serve(socket, Router::new().fallback_service(files));
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

    /// Ends it, with whatever is under way.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended by itself.
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

/// An object of the size that its name says.
async fn object(uri: Uri) -> Response {
    let name = uri.path().trim_start_matches('/');
    match name.parse::<swell_base::Bytes>() {
        Ok(size) => Response::new(Body::new(Zeros(size.0))).into_response(),
        Err(_) => {
            let text = format!(
                "there is no file {name} in the directory that is served, and it is no size such as 1MB\n"
            );
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

/// So many zeros.
struct Zeros(u64);

static CHUNK: [u8; 65_536] = [0; 65_536];

impl http_body::Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        let n = self.0.min(CHUNK.len() as u64);
        self.0 -= n;
        let bytes = Bytes::from_static(&CHUNK[..n as usize]);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
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
        let _serving = Serving::on(listener, dir.path().into()).unwrap();
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
    }
}
