//! Requests to agents.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{Method, header};
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http1::SendRequest;

/// Opens a connection to an agent.
pub type Dial = Arc<dyn Fn() -> io::Result<TcpStream> + Send + Sync>;

/// Sends requests on a connection.
pub(super) type Sender = SendRequest<Full<Bytes>>;

/// The host of `HOST:PORT`; an IPv6 address without its brackets.
pub(super) fn host_of(at: &str) -> &str {
    let host = at.rsplit_once(':').map_or(at, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

/// A request with the token.
pub(super) fn request(
    method: &Method,
    path: &str,
    token: &str,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "agent")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
}
