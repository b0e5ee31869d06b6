//! How agents identify themselves, and how controllers authenticate them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, DistinguishedName,
    RootCertStore, ServerConfig, SignatureScheme, WantsVerifier, client,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::hex;

/// Why TLS cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that contains no valid certificates or no valid key.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
    /// The certificate and the key do not match or cannot be used.
    #[error("the certificate: {0}")]
    Certificate(String),
    /// Not a valid fingerprint.
    #[error("`{0}` is not a fingerprint: it is the 64 hexadecimal digits that the agent printed")]
    Fingerprint(String),
    /// Whoever sends the token over a connection must know to whom.
    #[error("whom to trust? --ca FILE or --fingerprint HEX")]
    Untrusting,
}

/// How a controller authenticates agents.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Plain HTTP, restricted to loopback addresses.
    #[default]
    Loopback,
    /// Certificates with these fingerprints.
    Fingerprints(Vec<String>),
    /// Certificates signed by the authorities in a PEM file, for the name by which the agent is reached.
    Authorities(PathBuf),
}

/// A certificate and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// The SHA-256 fingerprint of a certificate, in hexadecimal.
pub fn fingerprint(certificate: &[u8]) -> String {
    hex::encode(&digest(certificate))
}

/// The SHA-256 fingerprint of a certificate.
pub(super) fn digest(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

impl Identity {
    /// Creates a self-signed identity. To verify that it belongs to the agent, compare the fingerprint.
    ///
    /// # Errors
    /// If no key can be created.
    pub fn made() -> Result<Identity, TlsError> {
        let made = rcgen::generate_simple_self_signed(vec!["swell-agent".to_owned()])
            .map_err(|e| TlsError::Certificate(e.to_string()))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Identity {
            chain: vec![made.cert.der().clone()],
            key: key.into(),
        })
    }

    /// Reads an identity from PEM files.
    ///
    /// # Errors
    /// If a file cannot be read or parsed.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
        let wrong = |path: &Path, reason: String| TlsError::File {
            path: path.display().to_string(),
            reason,
        };
        let chain = certificates(certificate)?;
        let read = PrivateKeyDer::from_pem_file(key);
        let key = read.map_err(|e| wrong(key, e.to_string()))?;
        Ok(Identity { chain, key })
    }

    /// The fingerprint of its certificate.
    pub fn fingerprint(&self) -> String {
        self.chain
            .first()
            .map_or_else(String::new, |c| fingerprint(c))
    }

    /// The configuration of a server that any client may connect to.
    pub(super) fn server(self) -> Result<Arc<ServerConfig>, TlsError> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_single_cert(self.chain, self.key)
            .map_err(wrong)?;
        Ok(Arc::new(config))
    }

    /// The configuration of a server whose clients need a certificate that `callers` accepts.
    pub(super) fn server_for(&self, callers: Callers) -> Result<Arc<ServerConfig>, TlsError> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_client_cert_verifier(Arc::new(callers))
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(wrong)?;
        Ok(Arc::new(config))
    }

    /// The configuration of a client that shows this identity to a server that `trust` accepts.
    ///
    /// # Errors
    /// If `trust` accepts nobody or is invalid, or the certificate cannot be used.
    pub(super) fn client(&self, trust: &Trust) -> Result<Arc<ClientConfig>, TlsError> {
        let config = trusting(trust)?
            .ok_or(TlsError::Untrusting)?
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            .map_err(wrong)?;
        Ok(Arc::new(config))
    }
}

impl Clone for Identity {
    fn clone(&self) -> Identity {
        Identity {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

fn wrong(error: rustls::Error) -> TlsError {
    TlsError::Certificate(error.to_string())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |reason: String| TlsError::File {
        path: path.display().to_string(),
        reason,
    };
    let all: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|e| wrong(e.to_string()))?
        .collect();
    let all = all.map_err(|e| wrong(e.to_string()))?;
    if all.is_empty() {
        return Err(wrong("no certificate in it".into()));
    }
    Ok(all)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(wrong)?;
    }
    Ok(roots)
}

/// A client's configuration, except for its own certificate; `None` for plain HTTP.
fn trusting(
    trust: &Trust,
) -> Result<Option<ConfigBuilder<ClientConfig, client::WantsClientCert>>, TlsError> {
    let config: ConfigBuilder<ClientConfig, WantsVerifier> =
        ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
    Ok(match trust {
        Trust::Loopback => None,
        Trust::Fingerprints(texts) => {
            let pins: Result<Vec<[u8; 32]>, TlsError> = texts.iter().map(|t| pin(t)).collect();
            let pinned = Pinned {
                pins: pins?,
                algorithms: provider().signature_verification_algorithms,
            };
            let config = config.dangerous();
            Some(config.with_custom_certificate_verifier(Arc::new(pinned)))
        }
        Trust::Authorities(path) => Some(config.with_root_certificates(roots(path)?)),
    })
}

/// The configuration of a client without a certificate; `None` for plain HTTP.
pub(super) fn anonymous(trust: &Trust) -> Result<Option<Arc<ClientConfig>>, TlsError> {
    let config = trusting(trust)?;
    Ok(config.map(|c| Arc::new(c.with_no_client_auth())))
}

/// Why a TLS handshake failed. Bytes that are no TLS at all have a sentence of their own.
pub(super) fn failure(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidMessage(_)) => "the other side does not speak TLS".into(),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
        )) => format!(
            "{error}: enrol its host again, for certificates of both ends (`swell agent enrol`)"
        ),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::BadSignature | CertificateError::UnknownIssuer,
        )) => format!("{error}: another authority than that of `--ca` has signed it"),
        // Our own sentences, which would be called an "unexpected error".
        Some(rustls::Error::General(text)) => text.clone(),
        _ => error.to_string(),
    }
}

/// Checks that a text is a fingerprint: 64 hexadecimal digits, colons aside.
///
/// # Errors
/// If it is none.
pub fn is_fingerprint(text: &str) -> Result<(), TlsError> {
    pin(text).map(|_| ())
}

pub(super) fn pin(text: &str) -> Result<[u8; 32], TlsError> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b':').collect();
    hex::decode(&digits).ok_or_else(|| TlsError::Fingerprint(text.into()))
}

/// Compares fingerprints instead of verifying a chain to an authority. The handshake signature is still verified, so
/// the other end must have the certificate's key.
#[derive(Debug)]
struct Pinned {
    pins: Vec<[u8; 32]>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = digest(end_entity);
        if self.pins.iter().any(|pin| bool::from(pin.ct_eq(&shown))) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(unknown(end_entity))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Accepts the certificates of agents that dial in: those with known fingerprints, and those that an authority signed.
/// Which agent it is, and whether it is expected, is determined after the handshake.
#[derive(Debug)]
pub(super) struct Callers {
    pins: Vec<[u8; 32]>,
    authorities: Option<Arc<dyn ClientCertVerifier>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Callers {
    /// Accepts these fingerprints, and what the authorities in a PEM file signed.
    pub fn new(pins: Vec<[u8; 32]>, authorities: Option<&Path>) -> Result<Callers, TlsError> {
        let signed = |path: &Path| {
            let roots = Arc::new(roots(path)?);
            WebPkiClientVerifier::builder_with_provider(roots, provider())
                .build()
                .map_err(|e| TlsError::Certificate(e.to_string()))
        };
        Ok(Callers {
            pins,
            authorities: authorities.map(signed).transpose()?,
            algorithms: provider().signature_verification_algorithms,
        })
    }
}

impl ClientCertVerifier for Callers {
    /// No hints, so that agents show self-signed certificates too.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let shown = digest(end_entity);
        if self.pins.iter().any(|pin| bool::from(pin.ct_eq(&shown))) {
            return Ok(ClientCertVerified::assertion());
        }
        match &self.authorities {
            Some(signed) => signed.verify_client_cert(end_entity, intermediates, now),
            None => Err(unknown(end_entity)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn unknown(certificate: &[u8]) -> rustls::Error {
    rustls::Error::General(format!(
        "its certificate has the fingerprint {}, which is none of those given",
        fingerprint(certificate)
    ))
}
