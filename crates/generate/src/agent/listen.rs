//! An agent: listens for controllers or dials out to one, and answers requests with a valid token.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use sha2::{Digest, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::dial_out::{DialOut, Dialler};
use super::errors::AgentError;
use super::routes::{self, Shared};
use super::runs::{Allowed, Runs};
use super::tls::Identity;
use super::visitors::{self, Accepted, Visitor, talk};
use crate::{Addresses, Hours, Limits};

/// The configuration of an agent.
pub struct AgentConfig {
    /// Where it listens for controllers, if it does.
    pub listen: Option<SocketAddr>,
    /// The controller that it dials out to, if any. This needs an identity.
    pub dial: Option<DialOut>,
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

/// Minimum length of a token in bytes.
const SHORTEST: usize = 16;
/// Time limit for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for what is still going on when an agent ends.
const LINGER: Duration = Duration::from_secs(1);

/// An agent.
pub struct Agent {
    listener: Option<TcpListener>,
    pub(super) dialler: Option<Dialler>,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
}

impl Agent {
    /// Starts to listen, if it does. It dials out in [`Agent::serve`].
    ///
    /// # Errors
    /// If a token is too short, plain HTTP would be reachable from other hosts, the certificate cannot be used, an
    /// address is invalid or cannot be bound, or no controller could reach it.
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
        if config.listen.is_none() && config.dial.is_none() {
            return Err(AgentError::Nowhere);
        }
        let open = config.listen.filter(|at| !at.ip().is_loopback());
        if let (None, Some(open)) = (&config.identity, open) {
            return Err(AgentError::Plain(open));
        }
        let dialler = match (config.dial, &config.identity) {
            (Some(dial), Some(identity)) => Some(Dialler::new(dial, identity)?),
            (Some(_), None) => return Err(AgentError::PlainDial),
            (None, _) => None,
        };
        let tls = match config.identity {
            Some(identity) => Some(TlsAcceptor::from(identity.server()?)),
            None => None,
        };
        let listen = |address| {
            visitors::listen(address).map_err(|error| AgentError::Listen { address, error })
        };
        let listener = config.listen.map(listen).transpose()?;
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
            dialler,
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

    /// The address on which it listens, if it does.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        let own = self.listener.as_ref();
        own.map(TcpListener::local_addr).transpose()
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
            // The other end knows about an error.
            let _ = talk(stream, router, PATIENCE).await;
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
                served = self.answer() => served,
                _ = stopped => Ok(()),
                _ = terminate.recv() => Ok(()),
            }
        });
        shared.runs.end();
        // Do not wait for a name server that does not answer.
        runtime.shutdown_timeout(LINGER);
        served
    }

    async fn answer(self) -> io::Result<()> {
        let router = routes::router(self.shared);
        let dialling = async {
            match &self.dialler {
                Some(dialler) => dialler.serve(&router).await,
                None => pending().await,
            }
        };
        let accepting = async {
            let Some(listener) = self.listener else {
                return pending().await;
            };
            let listener = tokio::net::TcpListener::from_std(listener)?;
            visitors::receive(listener, |one| accepted(one, self.tls.clone(), &router)).await;
            Ok(())
        };
        tokio::select! {
            () = dialling => Ok(()),
            accepted = accepting => accepted,
        }
    }
}

/// Serves a controller that has connected.
fn accepted(
    one: Accepted,
    tls: Option<TlsAcceptor>,
    router: &axum::Router,
) -> impl Future<Output = ()> + Send + use<> {
    let router = router.clone().layer(Extension::<Visitor>(one.visitor));
    async move {
        let _place = one.place;
        // On an error, the other end is gone or has been informed.
        match tls {
            Some(tls) => {
                if let Ok(secret) = tls.accept(one.stream).await {
                    let _ = talk(secret, router, PATIENCE).await;
                }
            }
            None => {
                let _ = talk(one.stream, router, PATIENCE).await;
            }
        }
    }
}
