//! The HTTP interface: the effect of each request.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::api::{Change, NewRun, Problem};
use super::runs::{Refusal, Runs};
use super::visitors::Visitor;
use crate::{Counts, ROW};

/// Maximum length of a body. A model's text has at most 32 MiB; as a JSON string it is longer.
const MODEL_BODY: usize = 72 << 20;
/// Most flows in one answer. This is about a megabyte, which also fits the time limit on a slow path.
pub(super) const FLOWS: usize = 10_000;
const JSON: &str = "application/json";
/// Header with the number of the first flow in an answer.
pub(super) const FIRST: &str = "swell-first";

pub(super) struct Shared {
    pub runs: Runs,
    /// SHA-256 of the token. Digests all have the same length, so that a comparison reveals nothing about the token.
    pub token: [u8; 32],
    /// The same for the metrics token.
    pub metrics_token: Option<[u8; 32]>,
}

/// The rights that a token gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bearer {
    Command,
    /// Permits reading the metrics and their description.
    Metrics,
}

impl Shared {
    fn bearer(&self, token: &[u8]) -> Option<Bearer> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        // Both comparisons are always made, so that the time does not depend on which token it is.
        let command = bool::from(digest.ct_eq(&self.token));
        let metrics = self
            .metrics_token
            .is_some_and(|own| digest.ct_eq(&own).into());
        match (command, metrics) {
            (true, _) => Some(Bearer::Command),
            (_, true) => Some(Bearer::Metrics),
            _ => None,
        }
    }
}

/// The routes, all of which require a token.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/runs", post(begin))
        .route("/v1/runs/{id}", get(view).patch(change).delete(delete))
        .route("/v1/runs/{id}/statistics", get(statistics))
        .route("/v1/runs/{id}/flows", get(flows))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(document))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(MODEL_BODY))
        .layer(map_response(in_json))
        .layer(from_fn_with_state(Arc::clone(&shared), with_token))
        .with_state(shared)
}

/// Rejects requests without a token that permits them (RFC 6750). This comes before any of the body is read.
async fn with_token(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION);
    let given = given.and_then(|v| v.as_bytes().split_first_chunk::<7>());
    let bearer = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    let bearer = bearer.and_then(|(_, token)| shared.bearer(token));
    if let Some(bearer) = bearer {
        if let Some(visitor) = request.extensions().get::<Visitor>() {
            visitor.forget();
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD)
            && matches!(request.uri().path(), "/metrics" | "/openapi.json");
        if bearer == Bearer::Metrics && !reads {
            let text = "this token is for /metrics and /openapi.json alone";
            return problem(StatusCode::FORBIDDEN, text);
        }
        // If the announced length is too large, nothing is read.
        let length = request.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|n| n > MODEL_BODY as u64) {
            let text = format!("no request is longer than {MODEL_BODY} bytes");
            return problem(StatusCode::PAYLOAD_TOO_LARGE, &text);
        }
        return next.run(request).await;
    }
    let mut answer = problem(StatusCode::UNAUTHORIZED, "the token is missing or wrong");
    let how = HeaderValue::from_static("Bearer");
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, how);
    answer
}

/// Errors that arise before our handlers run come as plain text or without a body: an invalid run number, a body that
/// is too long, an unsupported method. This converts them to JSON, because the description promises JSON for every
/// error.
async fn in_json(answer: Response) -> Response {
    let status = answer.status();
    let kind = answer.headers().get(header::CONTENT_TYPE);
    let ours = kind.is_some_and(|k| k.as_bytes() == JSON.as_bytes());
    if ours || !(status.is_client_error() || status.is_server_error()) {
        return answer;
    }
    let (head, body) = answer.into_parts();
    // The library's error texts, one per line.
    let text = axum::body::to_bytes(body, 1 << 16)
        .await
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let reason = match text.trim() {
        "" => status.canonical_reason().unwrap_or("refused"),
        text => text,
    };
    let mut told = problem(status, reason);
    // Keep the list of the methods that the resource supports (RFC 9110 section 15.5.6).
    if let Some(methods) = head.headers.get(header::ALLOW) {
        told.headers_mut().insert(header::ALLOW, methods.clone());
    }
    told
}

async fn status(State(shared): State<Arc<Shared>>) -> Response {
    json(StatusCode::OK, &shared.runs.status())
}

async fn begin(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let asked: NewRun = match read(&body) {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    // Parsing a model and starting threads takes a while.
    away(move || match shared.runs.begin(&asked) {
        Ok(view) => json(StatusCode::CREATED, &view),
        Err(refusal) => refused(&refusal),
    })
    .await
}

async fn view(State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Response {
    answer(shared.runs.view(id))
}

async fn change(State(shared): State<Arc<Shared>>, Path(id): Path<u64>, body: Bytes) -> Response {
    let change: Change = match read(&body) {
        Ok(change) => change,
        Err(answer) => return answer,
    };
    away(move || answer(shared.runs.change(id, &change))).await
}

async fn delete(State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Response {
    away(move || match shared.runs.delete(id) {
        Ok(()) => bare(StatusCode::NO_CONTENT),
        Err(refusal) => refused(&refusal),
    })
    .await
}

async fn statistics(State(shared): State<Arc<Shared>>, Path(id): Path<u64>) -> Response {
    answer(shared.runs.statistics(id))
}

/// Flows as rows of [`ROW`] bytes, from number `after` on.
async fn flows(State(shared): State<Arc<Shared>>, Path(id): Path<u64>, uri: Uri) -> Response {
    let parameter = |part: &str| part.strip_prefix("after=").map(str::parse::<u64>);
    let after = uri.query().and_then(|q| q.split('&').find_map(parameter));
    let after = match after.unwrap_or(Ok(0)) {
        Ok(after) => after,
        Err(_) => return problem(StatusCode::BAD_REQUEST, "after: a number from 0"),
    };
    let (first, rows) = match shared.runs.flows(id, after, FLOWS) {
        Ok(rows) => rows,
        Err(refusal) => return refused(&refusal),
    };
    debug_assert!(rows.len().is_multiple_of(ROW));
    let mut answer = Response::new(Body::from(rows));
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(HeaderName::from_static(FIRST), HeaderValue::from(first));
    answer
}

/// All counters in Prometheus's text format 0.0.4.
async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let all = shared.runs.all_statistics();
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, values: &[(u64, &str, f64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP swell_agent_{name} {}", meaning(name));
        let _ = writeln!(text, "# TYPE swell_agent_{name} {kind}");
        for (id, part, value) in values {
            let _ = writeln!(
                text,
                "swell_agent_{name}{{run=\"{id}\",part=\"{part}\"}} {value}"
            );
        }
    };
    let each = |f: &dyn Fn(&super::api::StatisticsView) -> f64| -> Vec<(u64, &str, f64)> {
        let value = all.iter().map(|s| (s.run.id, s.run.part.as_str(), f(s)));
        value.collect()
    };
    family("runs", "gauge", &[(0, "all", all.len() as f64)]);
    family("sessions", "gauge", &each(&|s| s.sessions as f64));
    family("open_connections", "gauge", &each(&|s| s.open as f64));
    family("parties", "gauge", &each(&|s| s.parties as f64));
    let seconds = |us: f64| us / 1e6;
    family(
        "late_p99_seconds",
        "gauge",
        &each(&|s| seconds(s.late.p99_us)),
    );
    family(
        "late_max_seconds",
        "gauge",
        &each(&|s| seconds(s.late.max_us)),
    );
    for (name, _) in Counts::meanings() {
        let count = |s: &super::api::StatisticsView| {
            let found = s.counts.each().find(|c| c.0 == name);
            found.map_or(0.0, |c| c.1 as f64)
        };
        family(&format!("{name}_total"), "counter", &each(&count));
    }
    let mut answer = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// The help text of a metric.
fn meaning(name: &str) -> &'static str {
    match name {
        "runs" => "Runs that the agent has.",
        "sessions" => "Sessions that are active.",
        "open_connections" => "Connections that are open.",
        "parties" => "Agents on the other side that have agreed.",
        "late_p99_seconds" => "How late transfers began, 99th percentile.",
        "late_max_seconds" => "How late transfers began, the latest.",
        other => {
            let count = other.trim_end_matches("_total");
            let found = Counts::meanings().find(|(own, _)| *own == count);
            found.map_or("", |(_, meaning)| meaning)
        }
    }
}

async fn document() -> Response {
    json(StatusCode::OK, &super::documents::openapi())
}

async fn unknown() -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "there is no such resource: /openapi.json lists them",
    )
}

/// Runs work that may take long on a thread of its own.
async fn away(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "a fault of the agent's"))
}

#[expect(
    clippy::result_large_err,
    reason = "the error is the answer, made once for a request"
)]
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Response> {
    serde_json::from_slice(body).map_err(|e| problem(StatusCode::BAD_REQUEST, &e.to_string()))
}

fn answer<T: Serialize>(result: Result<T, Refusal>) -> Response {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err(refusal) => refused(&refusal),
    }
}

pub(super) fn refused(refusal: &Refusal) -> Response {
    match refusal {
        Refusal::Wrong(why) => problem(StatusCode::BAD_REQUEST, why),
        Refusal::Unknown(id) => problem(StatusCode::NOT_FOUND, &format!("there is no run {id}")),
        Refusal::Forbidden(why) => problem(StatusCode::FORBIDDEN, why),
        Refusal::Conflict(why) => problem(StatusCode::CONFLICT, why),
        Refusal::Failed(why) => problem(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

fn bare(status: StatusCode) -> Response {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}

fn problem(status: StatusCode, message: &str) -> Response {
    let error = message.to_owned();
    json(status, &Problem { error })
}

fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    // These types always serialize: numbers, texts, lists, and maps with text or number keys.
    let text = serde_json::to_vec(value).unwrap_or_default();
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(JSON);
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
