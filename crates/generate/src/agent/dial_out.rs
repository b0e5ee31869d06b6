//! An agent that dials out to its controller, because nothing can connect to the agent's host: NAT or a firewall.
//!
//! The agent is the client of TCP and of TLS, and shows its certificate. Then the roles of HTTP are reversed: the agent
//! answers requests on the connection, exactly as on connections that it accepts. So there is one interface, and a token
//! has the same rights. The agent keeps a few connections open, which the controller takes when it needs them.

use std::error::Error as _;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::Response;
use futures_util::future::join_all;
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use swell_base::Stream;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::errors::AgentError;
use super::request::host_of;
use super::tls::{self, Identity, Trust};
use super::visitors::talk;

/// The controller that an agent dials out to.
pub struct DialOut {
    /// Its location, `HOST:PORT`.
    pub to: String,
    /// How to authenticate it. [`Trust::Loopback`] is refused.
    pub trust: Trust,
    /// Called with a sentence when the state of the connections changes.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

/// Connections that an agent keeps open: a controller uses one for requests and one for leases. The third replaces one
/// that breaks, without waiting for another to be dialled.
const LINES: usize = 3;
/// Time limit for finding the addresses of a name, and for the TLS handshake.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for connecting to one address. A SYN is repeated after one second (RFC 6298, section 2.1), so one may be
/// lost.
const EACH: Duration = Duration::from_secs(3);
/// The wait before another attempt doubles from the first of these to the last.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(5);
/// A connection that lasted this long counts as a success, after which the wait is short again.
const STEADY: Duration = Duration::from_secs(5);
/// A controller that refuses the agent closes the connection within this time. In TLS 1.3, a client does not learn from
/// the handshake whether its certificate was accepted (RFC 8446, section 4.4.2.4).
const REFUSED: Duration = Duration::from_secs(1);
/// A connection without a request for this long is given up. The controller sends one at least every [`PING`].
const IDLE: Duration = Duration::from_secs(15);
/// Interval of requests on connections that the controller does not need.
pub(super) const PING: Duration = Duration::from_secs(4);
/// An idle connection is probed after the first of these, and then once in the second. It is closed after the third. This
/// also keeps the mapping of a NAT alive, which may otherwise expire.
pub(super) const PROBES: [Duration; 3] = [
    Duration::from_secs(3),
    Duration::from_secs(1),
    Duration::from_secs(6),
];

/// Finds the addresses of `HOST:PORT`. May block.
pub(super) type Resolve = Arc<dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

/// Dials out, and serves what it has reached.
pub(super) struct Dialler {
    to: String,
    name: ServerName<'static>,
    pub resolve: Resolve,
    connector: TlsConnector,
    tell: Box<dyn Fn(&str) + Send + Sync>,
    told: Mutex<String>,
    /// Notified when the controller was reached.
    reached: Notify,
}

impl Dialler {
    pub fn new(dial: DialOut, identity: &Identity) -> Result<Dialler, AgentError> {
        let port = dial.to.rsplit_once(':').map(|(_, p)| p.parse::<u16>());
        let name = ServerName::try_from(host_of(&dial.to).to_owned());
        let (Some(Ok(1..)), Ok(name)) = (port, name) else {
            return Err(AgentError::Dial(dial.to));
        };
        Ok(Dialler {
            connector: TlsConnector::from(identity.client(&dial.trust)?),
            name,
            resolve: Arc::new(|to| Ok(to.to_socket_addrs()?.collect())),
            to: dial.to,
            tell: dial.tell,
            told: Mutex::default(),
            reached: Notify::new(),
        })
    }

    /// Keeps connections open, without end.
    pub async fn serve(&self, router: &axum::Router) {
        join_all((0..LINES).map(|_| self.line(router))).await;
    }

    async fn line(&self, router: &axum::Router) {
        // Agents that lost the same controller do not all come back at the same instant. If the kernel provides no
        // random number, they do.
        let mut seed = [0; 8];
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let mut random = Stream::new(u64::from_le_bytes(seed), "generate/dial");
        let mut wait = FIRST;
        loop {
            let begun = Instant::now();
            // Before dialling, so that no news is missed.
            let news = self.reached.notified();
            let (reached, why) = match self.dial().await {
                Ok(secret) => {
                    self.reached.notify_waiters();
                    (true, self.answer(secret, router).await)
                }
                Err(why) => (false, why),
            };
            if begun.elapsed() > STEADY && reached {
                wait = FIRST;
            }
            self.say(&format!("{}: {why}; dialling again", self.to));
            tokio::select! {
                () = tokio::time::sleep(wait.mul_f64(0.5 + random.uniform())) => {}
                // Once the controller can be reached, all connections are made at once. But if it refused one, it may
                // refuse the others, too.
                () = news, if !reached => {}
            }
            wait = (wait * 2).min(LONGEST);
        }
    }

    /// Opens a connection.
    async fn dial(&self) -> Result<TlsStream<TcpStream>, String> {
        let late = |_| "no answer in time".to_owned();
        let stream = self.connect().await?;
        keep_alive(&stream).map_err(|e| e.to_string())?;
        let greeting = self.connector.connect(self.name.clone(), stream);
        let greeted = tokio::time::timeout(PATIENCE, greeting);
        let secret = greeted.await.map_err(late)?;
        secret.map_err(|e| tls::failure(&e))
    }

    /// Connects to the first address that answers.
    async fn connect(&self) -> Result<TcpStream, String> {
        let (resolve, to) = (Arc::clone(&self.resolve), self.to.clone());
        let resolving = tokio::task::spawn_blocking(move || resolve(&to));
        let found = tokio::time::timeout(PATIENCE, resolving).await;
        let found = found.map_err(|_| "no name server answered in time")?;
        let found = found.map_err(|e| e.to_string())?;
        let found = found.map_err(|e| e.to_string())?;
        let mut failures: Vec<String> = Vec::new();
        for address in found {
            // Each has a time limit of its own, so that one that never answers does not hide the next.
            let why = match tokio::time::timeout(EACH, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer in time".into(),
            };
            failures.push(match address.to_string() == self.to {
                true => why,
                false => format!("{address}: {why}"),
            });
        }
        match failures.is_empty() {
            true => Err("no address has this name".into()),
            false => Err(failures.join(", ")),
        }
    }

    /// Answers requests until the connection ends; returns the reason.
    async fn answer(&self, secret: TlsStream<TcpStream>, router: &axum::Router) -> String {
        // Whether the last answer said that the controller has another token.
        let refused = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&refused);
        let noting = map_response(move |answer: Response| {
            let unauthorized = answer.status() == StatusCode::UNAUTHORIZED;
            note.store(unauthorized, Ordering::Release);
            std::future::ready(answer)
        });
        let router = router.clone().layer(noting);
        let mut talking = pin!(talk(secret, router, IDLE));
        let ended = match tokio::time::timeout(REFUSED, &mut talking).await {
            Ok(ended) => ended,
            Err(_) => {
                self.say(&format!("{}: connected", self.to));
                talking.await
            }
        };
        if refused.load(Ordering::Acquire) {
            return "it has another token than this agent".into();
        }
        let Err(error) = ended else {
            return "it ended the connection".into();
        };
        let inner = error.source().map_or(String::new(), |e| format!(": {e}"));
        format!("{error}{inner}")
    }

    /// Tells what has changed. All connections usually share one fate.
    fn say(&self, text: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != text {
            text.clone_into(&mut told);
            (self.tell)(text);
        }
    }
}

/// Lets the kernel detect that the other end is gone, on an idle connection and on one with unacknowledged data
/// (tcp(7)).
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let [idle, interval, end] = PROBES;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, idle)?;
    sockopt::set_tcp_keepintvl(stream, interval)?;
    sockopt::set_tcp_user_timeout(stream, end.as_millis() as u32)?;
    Ok(())
}
