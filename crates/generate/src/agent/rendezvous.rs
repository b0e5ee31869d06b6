//! Where agents dial in to their controller.

use std::io;
use std::net::{SocketAddr, TcpListener};

use super::tls::Identity;
use super::visitors;

/// A controller's address for agents that dial in, and the certificate that it shows them.
pub struct Rendezvous {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) identity: Identity,
}

impl Rendezvous {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn new(listen: SocketAddr, identity: Identity) -> io::Result<Rendezvous> {
        let listener = visitors::listen(listen)?;
        Ok(Rendezvous {
            address: listener.local_addr()?,
            listener,
            identity,
        })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The fingerprint of its certificate.
    pub fn fingerprint(&self) -> String {
        self.identity.fingerprint()
    }
}
