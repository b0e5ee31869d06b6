//! How agents identify themselves, and how controllers authenticate them.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

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
}

/// A certificate and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// The SHA-256 fingerprint of a certificate, in hexadecimal.
pub fn fingerprint(certificate: &[u8]) -> String {
    let digest = Sha256::digest(certificate);
    digest.iter().map(|b| format!("{b:02x}")).collect()
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

    pub(super) fn server(self) -> Result<Arc<ServerConfig>, TlsError> {
        let wrong = |e: rustls::Error| TlsError::Certificate(e.to_string());
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_single_cert(self.chain, self.key)
            .map_err(wrong)?;
        Ok(Arc::new(config))
    }
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

/// A client configuration that trusts certificates signed by an authority in a PEM file.
pub(super) fn trusting_authorities(path: &Path) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|e| TlsError::Certificate(e.to_string()))?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError::Certificate(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// A client configuration that trusts exactly the certificates with these fingerprints.
pub(super) fn trusting_fingerprints(texts: &[String]) -> Result<Arc<ClientConfig>, TlsError> {
    let pins: Result<Vec<[u8; 32]>, TlsError> = texts.iter().map(|t| pin(t)).collect();
    let pinned = Pinned {
        pins: pins?,
        algorithms: provider().signature_verification_algorithms,
    };
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError::Certificate(e.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn pin(text: &str) -> Result<[u8; 32], TlsError> {
    let wrong = || TlsError::Fingerprint(text.into());
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b':').collect();
    if digits.len() != 64 {
        return Err(wrong());
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |b: u8| (b as char).to_digit(16).ok_or_else(wrong);
        // Two hexadecimal digits of four bits each.
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Ok(out)
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
        let digest: [u8; 32] = Sha256::digest(end_entity).into();
        if self.pins.iter().any(|pin| bool::from(pin.ct_eq(&digest))) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::General(format!(
            "its certificate has the fingerprint {}, which is none of those given",
            fingerprint(end_entity)
        )))
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
