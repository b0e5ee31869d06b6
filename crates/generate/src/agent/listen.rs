//! An agent: it listens, and answers requests with a valid token.

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

/// How an agent is set up.
pub struct AgentConfig {
    /// Where it listens for its controller.
    pub listen: SocketAddr,
    /// What its controller must know: at least 16 bytes.
    pub token: String,
    /// What those must know who may read the metrics, and nothing else.
    pub metrics_token: Option<String>,
    /// Its certificate; `None`: plain HTTP, on a loopback address alone.
    pub identity: Option<Identity>,
    /// Where it wants to be sent traffic, if not where its controller reaches it.
    pub address: Option<String>,
    /// Addresses that its sockets may have, in addition to those of its host.
    pub pool: Addresses,
    /// The port at which it is sent traffic; 0: the kernel chooses one for every run.
    pub port: u16,
    /// Threads that send and receive ask for real-time priority.
    pub precise: bool,
    /// What it does at most, whoever asks.
    pub limits: Limits,
    /// When it does anything; `None`: always.
    pub hours: Option<Hours>,
}

/// Why an agent does not run.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Somebody could guess it.
    #[error("the token has {0} bytes: make one of at least 16, such as by `openssl rand -hex 16`")]
    Token(usize),
    /// Who may read could command.
    #[error("the token for metrics is that for commands: make another one")]
    SameToken,
    /// Without TLS everybody on the way could read the token.
    #[error("{0} is not a loopback address: plain HTTP works on those alone; leave TLS on")]
    Plain(SocketAddr),
    /// The certificate is of no use.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be had, or the runtime not be made.
    #[error("{address}: {error}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// What the kernel said.
        error: io::Error,
    },
}

/// Shorter tokens are refused.
const SHORTEST: usize = 16;
/// Connections at a time. One more takes the place of one on which the token has not been shown.
const CONNECTIONS: usize = 256;
/// Places kept free while there is anybody to make room: a newcomer does not wait until another is gone.
const RESERVE: usize = 16;
/// Connections that the kernel has made and that wait to be accepted: it refuses more, and then everybody.
const BACKLOG: i32 = 4096;
/// The head of a request may take this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// An agent that listens.
pub struct Agent {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Agent {
    /// Begins to listen.
    ///
    /// # Errors
    /// For a token that is too short, plain HTTP at an address that others reach, a certificate that is
    /// of no use, an address that cannot be had.
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
        // The standard library asks for 128 (listen(2): the last call counts).
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

    /// Where it listens.
    ///
    /// # Errors
    /// Where the kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers one controller on a stream that is there already, without TLS, until the stream ends.
    ///
    /// # Errors
    /// Where no runtime can be made.
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

    /// Answers until `stopped` gets a message or is dropped, or the process is asked to terminate; then ends
    /// all runs. Once it would notice being asked, it calls `ready`.
    ///
    /// # Errors
    /// Where no runtime can be made.
    pub fn serve(self, stopped: oneshot::Receiver<()>, ready: impl FnOnce()) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::clone(&self.shared);
        let served = runtime.block_on(async {
            // What stops containers and services; the first process of a container dies of nothing else.
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
                // Of that one connection, or for want of descriptors, which may come back.
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
            // Requests are small and wait for their answers.
            let _ = stream.set_nodelay(true);
            let visitor = visitors.visitor(number, from.ip());
            let (router, tls, visit) = (router.clone(), self.tls.clone(), Visit(visitor.clone()));
            let task = tokio::spawn(async move {
                let own = &visit.0;
                let served = async {
                    match tls {
                        Some(tls) => {
                            // Whoever was at the other end is gone, or knows why not.
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
    // Who says everything at once and then only listens is answered.
    server.half_close(true);
    server
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    let router = match visitor {
        Some(visitor) => router.layer(Extension(visitor.clone())),
        None => router,
    };
    let service = TowerToHyperService::new(router);
    // The other end has been notified, or is gone.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
