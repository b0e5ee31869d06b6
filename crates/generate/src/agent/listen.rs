//! An agent: listens for controllers and answers requests with a valid token.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

use super::routes::{self, Shared};
use super::runs::{Allowed, Runs};
use super::tls::{Identity, TlsError};
use super::visitors::{Visit, Visitor, Visitors};
use crate::{Addresses, Hours, Limits};

/// The configuration of an agent.
pub struct AgentConfig {
    /// Where it listens for controllers.
    pub listen: SocketAddr,
    /// The token that authorizes controllers: at least 16 bytes.
    pub token: String,
    /// A token that only permits reading the metrics.
    pub metrics_token: Option<String>,
    /// Its certificate; `None` means plain HTTP, which is only permitted on a loopback address.
    pub identity: Option<Identity>,
    /// Where it accepts traffic, if not at the address that controllers connect to.
    pub address: Option<String>,
    /// Addresses that its sockets may use in addition to those of its host.
    pub pool: Addresses,
    /// The port for traffic; if 0, the kernel chooses one for every run.
    pub port: u16,
    /// Whether threads that send and receive request real-time priority.
    pub precise: bool,
    /// Limits that apply to every controller.
    pub limits: Limits,
    /// The hours in which it may generate traffic; `None` means always.
    pub hours: Option<Hours>,
}

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The token is short enough to be guessed.
    #[error("the token has {0} bytes: make one of at least 16, such as by `openssl rand -hex 16`")]
    Token(usize),
    /// Both tokens are the same, so a reader of metrics could control the agent.
    #[error("the token for metrics is that for commands: make another one")]
    SameToken,
    /// Without TLS, anyone on the path could read the token.
    #[error("{0} is not a loopback address: plain HTTP works on those alone; leave TLS on")]
    Plain(SocketAddr),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be bound, or the runtime cannot be created.
    #[error("{address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        error: io::Error,
    },
}

/// Minimum length of a token in bytes.
const SHORTEST: usize = 16;
/// Most connections at a time. If there are more, an unauthenticated connection is closed.
const CONNECTIONS: usize = 256;
/// Connection slots kept free, as long as there are unauthenticated connections to close. So a new connection need
/// not wait until another one is closed.
const RESERVE: usize = 16;
/// Length of the listen queue. If it is full, the kernel refuses all further connections.
const BACKLOG: i32 = 4096;
/// Time limit for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A listening agent.
pub struct Agent {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Agent {
    /// Starts to listen.
    ///
    /// # Errors
    /// If a token is too short, plain HTTP would be reachable from other hosts, the certificate cannot be used, or
    /// the address cannot be bound.
    pub fn new(config: AgentConfig) -> Result<Agent, AgentError> {
        let metrics = config.metrics_token.as_deref();
        for token in [Some(config.token.as_str()), metrics].into_iter().flatten() {
            if token.len() < SHORTEST {
                return Err(AgentError::Token(token.len()));
            }
        }
        if metrics == Some(config.token.as_str()) {
            return Err(AgentError::SameToken);
        }
        if config.identity.is_none() && !config.listen.ip().is_loopback() {
            return Err(AgentError::Plain(config.listen));
        }
        let tls = match config.identity {
            Some(identity) => Some(TlsAcceptor::from(identity.server()?)),
            None => None,
        };
        let failed = |error| AgentError::Listen {
            address: config.listen,
            error,
        };
        let listener = TcpListener::bind(config.listen).map_err(failed)?;
        // The standard library's listen queue has 128 entries; a later listen(2) replaces it.
        rustix::net::listen(&listener, BACKLOG).map_err(|e| failed(e.into()))?;
        listener.set_nonblocking(true).map_err(failed)?;
        let allowed = Allowed {
            address: config.address,
            pool: config.pool,
            port: config.port,
            precise: config.precise,
            limits: config.limits,
            hours: config.hours,
        };
        Ok(Agent {
            listener,
            tls,
            shared: Arc::new(Shared {
                runs: Runs::new(allowed),
                token: Sha256::digest(config.token.as_bytes()).into(),
                metrics_token: config
                    .metrics_token
                    .map(|t| Sha256::digest(t.as_bytes()).into()),
            }),
        })
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers one controller on an existing stream, without TLS, until the stream ends.
    ///
    /// # Errors
    /// If no runtime can be created.
    pub fn talk(&self, stream: UnixStream) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        stream.set_nonblocking(true)?;
        let router = routes::router(Arc::clone(&self.shared));
        runtime.block_on(async {
            let stream = tokio::net::UnixStream::from_std(stream)?;
            talk(stream, router, None).await;
            Ok(())
        })
    }

    /// Answers requests until `stopped` gets a message or is dropped, or until the process receives SIGTERM. Then it
    /// ends all runs. Calls `ready` once the signal would be noticed.
    ///
    /// # Errors
    /// If no runtime can be created.
    pub fn serve(self, stopped: oneshot::Receiver<()>, ready: impl FnOnce()) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::clone(&self.shared);
        let served = runtime.block_on(async {
            // SIGTERM stops containers and services. The first process of a container ignores it unless it has a
            // handler.
            let mut terminate = signal(SignalKind::terminate())?;
            ready();
            tokio::select! {
                served = self.accept() => served,
                _ = stopped => Ok(()),
                _ = terminate.recv() => Ok(()),
            }
        });
        shared.runs.end();
        served
    }

    async fn accept(self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let router = routes::router(self.shared);
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let visitors = Arc::new(Visitors::default());
        for number in 0.. {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                // The error concerns that connection only, or descriptors ran out, which is temporary.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            if places.available_permits() < RESERVE {
                visitors.make_room();
            }
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                break;
            };
            // Requests are small, and each waits for its answer.
            let _ = stream.set_nodelay(true);
            let visitor = visitors.visitor(number, from.ip());
            let (router, tls, visit) = (router.clone(), self.tls.clone(), Visit(visitor.clone()));
            let task = tokio::spawn(async move {
                let own = &visit.0;
                let served = async {
                    match tls {
                        Some(tls) => {
                            // On an error, the other end is gone or has been informed by TLS.
                            if let Ok(secret) = tls.accept(stream).await {
                                talk(secret, router, Some(own)).await;
                            }
                        }
                        None => talk(stream, router, Some(own)).await,
                    }
                };
                tokio::select! {
                    () = served => {}
                    () = own.stays_anonymous() => {}
                }
                drop(place);
            });
            visitor.served_by(task.abort_handle());
        }
        Ok(())
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: axum::Router,
    visitor: Option<&Visitor>,
) {
    let mut server = http1::Builder::new();
    // A client that half-closes its connection after its request still gets the answer.
    server.half_close(true);
    server
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    let router = match visitor {
        Some(visitor) => router.layer(Extension(visitor.clone())),
        None => router,
    };
    let service = TowerToHyperService::new(router);
    // On an error, the other end is gone or has been informed.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
