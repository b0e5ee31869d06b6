//! Accepting connections. Those that have not authenticated yet are closed soon, or earlier to make space for newer ones.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// Most connections at a time. If there are more, an unauthenticated connection is closed.
pub(super) const CONNECTIONS: usize = 256;
/// Connection slots kept free, as long as there are unauthenticated connections to close. So a new connection need
/// not wait until another one is closed.
const RESERVE: usize = 16;
/// Length of the listen queue. If it is full, the kernel refuses all further connections.
const BACKLOG: i32 = 4096;

/// A connection must authenticate within this time after connecting.
pub(super) const ANONYMOUS: Duration = Duration::from_secs(5);

/// Unauthenticated connections, by age.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    anonymous: Mutex<BTreeMap<u64, Anonymous>>,
}

#[derive(Debug)]
struct Anonymous {
    source: IpAddr,
    task: Option<AbortHandle>,
}

/// A handle to a connection that its requests carry.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    number: u64,
    all: Arc<Visitors>,
}

/// A connection that was accepted.
pub(super) struct Accepted {
    pub stream: TcpStream,
    pub from: SocketAddr,
    pub visitor: Visitor,
    /// One of [`CONNECTIONS`] slots, until it is dropped.
    pub place: OwnedSemaphorePermit,
}

/// Starts to listen, without blocking.
pub(super) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    // The standard library's listen queue has 128 entries; a later listen(2) replaces it.
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts connections without end, and serves each in a task of its own. The task ends early if the connection does not
/// authenticate in time ([`Visitor::forget`]).
pub(super) async fn receive<F>(listener: TcpListener, serve: impl Fn(Accepted) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
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
        let visit = Visit(visitor.clone());
        let served = serve(Accepted {
            stream,
            from,
            visitor: visitor.clone(),
            place,
        });
        let task = tokio::spawn(async move {
            tokio::select! {
                () = served => {}
                () = visit.0.stays_anonymous() => {}
            }
        });
        visitor.served_by(task.abort_handle());
    }
}

/// Answers requests on a stream until it ends. A request's head must arrive within `patience` after the connection
/// began or the last answer ended.
pub(super) async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: axum::Router,
    patience: Duration,
) -> hyper::Result<()> {
    let mut server = http1::Builder::new();
    // A client that half-closes its connection after its request still gets the answer.
    server.half_close(true);
    server
        .timer(TokioTimer::new())
        .header_read_timeout(patience);
    let service = TowerToHyperService::new(router);
    server.serve_connection(TokioIo::new(stream), service).await
}

/// Held by a connection's task. The visitor is removed however the task ends, also by a panic.
#[derive(Debug)]
pub(super) struct Visit(pub Visitor);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// The address range that one host can easily use: an IPv4 address, or a /64 of IPv6, in which a host can choose
/// addresses freely (RFC 4291, section 2.5.1).
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// The connection to close first: the oldest of the source with the most connections. So a flood from one source
/// displaces only itself. Among sources with equally many, the one with the oldest connection.
fn first_to_go(anonymous: &BTreeMap<u64, Anonymous>) -> Option<u64> {
    // The oldest connection of each source, and their number.
    let mut sources: BTreeMap<IpAddr, (u64, usize)> = BTreeMap::new();
    for (&number, Anonymous { source, .. }) in anonymous {
        sources.entry(*source).or_insert((number, 0)).1 += 1;
    }
    let most = sources
        .into_values()
        .min_by_key(|&(oldest, n)| (std::cmp::Reverse(n), oldest));
    most.map(|(oldest, _)| oldest)
}

impl Visitors {
    /// Registers a connection from `address`. Numbers must ascend.
    pub(super) fn visitor(self: &Arc<Visitors>, number: u64, address: IpAddr) -> Visitor {
        let place = Anonymous {
            source: source(address),
            task: None,
        };
        self.lock().insert(number, place);
        Visitor {
            number,
            all: Arc::clone(self),
        }
    }

    /// Closes one unauthenticated connection, if there is any: the oldest of the source with the most.
    pub(super) fn make_room(&self) {
        let mut anonymous = self.lock();
        let gone = first_to_go(&anonymous).and_then(|number| anonymous.remove(&number));
        if let Some(task) = gone.and_then(|gone| gone.task) {
            task.abort();
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Anonymous>> {
        // Poisoning is ignored: the map is consistent between any two calls.
        self.anonymous
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visitor {
    /// Sets the task that is aborted to close the connection.
    pub(super) fn served_by(&self, task: AbortHandle) {
        if let Some(place) = self.all.lock().get_mut(&self.number) {
            place.task = Some(task);
        }
    }

    /// Removes the entry: the connection has authenticated, or it ended.
    pub(super) fn forget(&self) {
        self.all.lock().remove(&self.number);
    }

    /// Completes when the time limit passes without authentication; never completes once it has authenticated.
    pub(super) async fn stays_anonymous(&self) {
        tokio::time::sleep(ANONYMOUS).await;
        let anonymous = self.all.lock().contains_key(&self.number);
        if !anonymous {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_source_with_most_goes_first() {
        let all = Arc::new(Visitors::default());
        let come = [
            "192.0.2.1",
            // These belong to one host, as far as can be known.
            "2001:db8:0:1::1",
            "192.0.2.2",
            "2001:db8:0:1:ffff::2",
            "::ffff:192.0.2.2",
            "2001:db8:0:1::3",
            "2001:db8:0:2::1",
        ];
        for (number, address) in (0..).zip(come) {
            all.visitor(number, address.parse().unwrap());
        }
        let mut gone: Vec<u64> = Vec::new();
        for _ in come {
            let before: Vec<u64> = all.lock().keys().copied().collect();
            all.make_room();
            let after = all.lock();
            gone.extend(before.iter().filter(|n| !after.contains_key(n)));
        }
        // Three of the /64, two of the mapped address, then by age.
        assert_eq!(gone, [1, 2, 3, 0, 4, 5, 6]);
    }

    #[test]
    fn a_task_that_panics_or_is_ended_leaves_nothing_behind() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let all = Arc::new(Visitors::default());
        let home = [127, 0, 0, 1].into();
        runtime.block_on(async {
            let visit = Visit(all.visitor(1, home));
            let task = tokio::spawn(async move {
                let _visit = visit;
                panic!("on purpose");
            });
            assert!(task.await.unwrap_err().is_panic());
            assert!(all.lock().is_empty());
            let visitor = all.visitor(2, home);
            let second = Visit(visitor.clone());
            let ended = tokio::spawn(async move {
                second.0.stays_anonymous().await;
            });
            visitor.served_by(ended.abort_handle());
            all.make_room();
            assert!(ended.await.unwrap_err().is_cancelled());
            assert!(all.lock().is_empty());
        });
    }
}
