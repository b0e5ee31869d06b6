//! An agent as seen from the controller: one HTTP connection, which either end may have opened.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::errors::RemoteError;
use super::lobby::Lobby;
use super::request::{Dial, Sender, host_of, request};
use super::tls::{self, Trust};

/// Time limit for a connection attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of an answer in bytes.
const LONGEST: usize = 64 << 20;

type Answer = (StatusCode, HeaderMap, Bytes);

/// How to get a connection to an agent.
#[derive(Clone)]
pub(super) enum ConnectVia {
    /// The controller opens it.
    Out {
        dial: Dial,
        tls: Option<(TlsConnector, ServerName<'static>)>,
    },
    /// The agent opens it.
    In(Arc<Lobby>),
}

pub(super) struct Remote {
    pub name: String,
    way: ConnectVia,
    token: String,
    sender: Option<Sender>,
    /// A pending connection attempt, which can outlive the request that started it.
    dialling: Option<JoinHandle<io::Result<TcpStream>>>,
    /// Its address.
    pub address: Option<IpAddr>,
    /// Time limit for an answer.
    pub patience: Duration,
}

/// Connects to the first address of a name that answers.
pub(super) fn dial(name: &str) -> Dial {
    let name = name.to_owned();
    Arc::new(move || {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no address has this name");
        for address in name.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    })
}

impl ConnectVia {
    /// Connects to the agent `name` at `at` by `dial`.
    pub fn out(
        [name, at]: [&str; 2],
        dial: Dial,
        trust: &Trust,
    ) -> Result<ConnectVia, RemoteError> {
        let tls = match tls::anonymous(trust)? {
            Some(config) => {
                let host = ServerName::try_from(host_of(at).to_owned());
                let host = host.map_err(|e| RemoteError::Away {
                    agent: name.into(),
                    reason: e.to_string(),
                })?;
                Some((TlsConnector::from(config), host))
            }
            None => None,
        };
        Ok(ConnectVia::Out { dial, tls })
    }
}

impl Remote {
    /// The agent `name`.
    pub fn new(name: &str, way: ConnectVia, token: &str) -> Remote {
        Remote {
            name: name.into(),
            way,
            token: token.into(),
            sender: None,
            dialling: None,
            address: None,
            patience: PATIENCE,
        }
    }

    /// Whether the agent dials in.
    pub fn dials(&self) -> bool {
        matches!(self.way, ConnectVia::In(_))
    }

    fn away(&self, reason: impl ToString) -> RemoteError {
        RemoteError::Away {
            agent: self.name.clone(),
            reason: reason.to_string(),
        }
    }

    /// A failed exchange on a connection.
    fn broken(&self, error: &hyper::Error) -> RemoteError {
        let plain = matches!(self.way, ConnectVia::Out { tls: None, .. });
        // A TLS server answers plain HTTP with an alert, which is no HTTP.
        if plain && error.is_parse() {
            return self.away(
                "it does not answer in plain HTTP; if it uses TLS, say whom to trust by --ca or \
                 --fingerprint",
            );
        }
        self.away(error)
    }

    async fn connect(&mut self) -> Result<(), RemoteError> {
        let (dial, tls) = match self.way.clone() {
            ConnectVia::Out { dial, tls } => (dial, tls),
            ConnectVia::In(lobby) => {
                let taken = lobby.take(&self.name).await;
                let (sender, from) = taken.ok_or_else(|| self.away("it has not dialled in"))?;
                self.address = Some(from.ip().to_canonical());
                self.sender = Some(sender);
                return Ok(());
            }
        };
        let begin = || tokio::task::spawn_blocking(move || dial());
        let dialled = self.dialling.get_or_insert_with(begin).await;
        self.dialling = None;
        let stream = dialled.map_err(|e| self.away(e))?;
        let stream = stream.map_err(|e| self.away(e))?;
        let peer: SocketAddr = stream.peer_addr().map_err(|e| self.away(e))?;
        self.address = Some(peer.ip().to_canonical());
        if tls.is_none() && !peer.ip().is_loopback() {
            let agent = self.name.clone();
            return Err(RemoteError::Untrusted { agent });
        }
        stream.set_nonblocking(true).map_err(|e| self.away(e))?;
        let stream = tokio::net::TcpStream::from_std(stream).map_err(|e| self.away(e))?;
        // Requests are small, and each waits for its answer.
        let _ = stream.set_nodelay(true);
        let sender = match tls {
            Some((connector, host)) => {
                let shaken = connector.connect(host, stream).await;
                let secret = shaken.map_err(|e| RemoteError::Secret {
                    agent: self.name.clone(),
                    reason: tls::failure(&e),
                })?;
                let greeted = http1::handshake(TokioIo::new(secret)).await;
                let (sender, connection) = greeted.map_err(|e| self.away(e))?;
                tokio::spawn(connection);
                sender
            }
            None => {
                let shaken = http1::handshake(TokioIo::new(stream)).await;
                let (sender, connection) = shaken.map_err(|e| self.away(e))?;
                tokio::spawn(connection);
                sender
            }
        };
        self.sender = Some(sender);
        Ok(())
    }

    async fn once(
        &mut self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Result<Answer, RemoteError> {
        let kept = !self.sender.as_ref().is_none_or(SendRequest::is_closed);
        if !kept {
            self.connect().await?;
        }
        let request = request(method, path, &self.token, body.clone());
        let request = request.map_err(|e| self.away(e))?;
        let Some(mut sender) = self.sender.take() else {
            return Err(self.away("no connection"));
        };
        let answer = match sender.try_send_request(request).await {
            Ok(answer) => answer,
            // The connection was closed before any part of the request was sent.
            Err(mut unsent) if kept => {
                let Some(message) = unsent.take_message() else {
                    return Err(self.broken(&unsent.into_error()));
                };
                self.connect().await?;
                let again = self.sender.take();
                sender = again.ok_or_else(|| self.away("no connection"))?;
                let answer = sender.send_request(message).await;
                answer.map_err(|e| self.broken(&e))?
            }
            Err(error) => return Err(self.broken(&error.into_error())),
        };
        let (head, rest) = answer.into_parts();
        let collected = Limited::new(rest, LONGEST).collect().await;
        let text = collected.map_err(|e| self.away(e))?.to_bytes();
        self.sender = Some(sender);
        Ok((head.status, head.headers, text))
    }

    /// Sends a request. If a kept connection turns out to be closed, sends it once more over a new connection.
    pub async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(HeaderMap, Bytes), RemoteError> {
        let kept = self.sender.is_some();
        let mut answer = self.timed(&method, path, &body).await;
        // A repeated POST would create a second run. An agent that did not answer in time would not answer now
        // either.
        if kept && method != Method::POST && matches!(answer, Some(Err(_))) {
            self.sender = None;
            answer = self.timed(&method, path, &body).await;
        }
        let answer = answer.unwrap_or_else(|| Err(self.away("no answer in time")));
        let (status, headers, text) = answer?;
        if status.is_success() {
            return Ok((headers, text));
        }
        let value: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
        let message = value.as_ref().and_then(|v| v["error"].as_str());
        Err(RemoteError::Refused {
            agent: self.name.clone(),
            status: status.as_u16(),
            message: message.unwrap_or("no reason given").into(),
        })
    }

    /// `None` if there was no answer in time.
    async fn timed(
        &mut self,
        method: &Method,
        path: &str,
        body: &Bytes,
    ) -> Option<Result<Answer, RemoteError>> {
        // A new run may include a large model.
        let patience = match *method {
            Method::POST => PATIENCE,
            _ => self.patience,
        };
        match tokio::time::timeout(patience, self.once(method, path, body)).await {
            Ok(answer) => Some(answer),
            Err(_) => {
                self.sender = None;
                None
            }
        }
    }

    /// A request with JSON in both directions.
    pub async fn call<T: DeserializeOwned>(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<T, RemoteError> {
        let body = match body {
            Some(value) => serde_json::to_vec(value).map_err(|e| self.away(e))?,
            None => Vec::new(),
        };
        let (_, answer) = self.ask(method, path, body.into()).await?;
        serde_json::from_slice(&answer).map_err(|e| self.away(format!("no such answer: {e}")))
    }
}
