//! HTTP/3 (RFC 9114) for the built-in server. Its certificate is made at its start and signed by nobody.

use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, header};
use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::quic::{BidiStream, RecvStream};
use h3::server::{Connection, RequestStream};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::version::TLS13;
use tower_service::Service;

/// Names in the certificate: that of the server in `swell under`, and that of every machine for itself.
const NAMES: [&str; 2] = ["server", "localhost"];

/// Serves until the runtime ends.
pub(super) async fn serve(socket: UdpSocket, router: Router) {
    let Ok(endpoint) = endpoint(socket) else {
        return;
    };
    while let Some(incoming) = endpoint.accept().await {
        let router = router.clone();
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else {
                return;
            };
            let connection = h3_quinn::Connection::new(connection);
            let Ok(mut connection) = Connection::<_, Bytes>::new(connection).await else {
                return;
            };
            while let Ok(Some(request)) = connection.accept().await {
                let router = router.clone();
                tokio::spawn(async move {
                    if let Ok((head, stream)) = request.resolve_request().await {
                        // Whoever asked may have gone.
                        let _ = answer(head, stream, router).await;
                    }
                });
            }
        });
    }
}

fn endpoint(socket: UdpSocket) -> io::Result<Endpoint> {
    let names = NAMES.map(str::to_owned);
    let own = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
    let key = PrivateKeyDer::Pkcs8(own.signing_key.serialize_der().into());
    let provider = Arc::new(ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .map_err(io::Error::other)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let config = ServerConfig::with_crypto(Arc::new(tls));
    let runtime = Arc::new(TokioRuntime);
    Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)
}

/// Answers a request as the other versions of HTTP do.
async fn answer<S>(
    head: Request<()>,
    stream: RequestStream<S, Bytes>,
    mut router: Router,
) -> Result<(), StreamError>
where
    S: BidiStream<Bytes>,
    S::RecvStream: Send + 'static,
{
    let bodiless = head.method() == Method::HEAD;
    let (mut out, incoming) = stream.split();
    let request = head.map(|()| Body::new(Incoming(incoming)));
    let response = match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let (mut answered, mut body) = response.into_parts();
    if let Some(length) = body.size_hint().exact()
        && let Ok(length) = HeaderValue::try_from(length.to_string())
    {
        let headers = &mut answered.headers;
        headers.entry(header::CONTENT_LENGTH).or_insert(length);
    }
    out.send_response(Response::from_parts(answered, ()))
        .await?;
    // A body that fails ends without `finish`, so the client sees that it is not whole.
    while !bodiless && let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) => out.send_data(data).await?,
            // Trailers, which this server has none of.
            Ok(Err(_)) => {}
            Err(_) => {
                out.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
                return Ok(());
            }
        }
    }
    out.finish().await
}

/// The body of a request.
struct Incoming<S>(RequestStream<S, Bytes>);

// Nothing in it is pinned: it is polled by reference.
impl<S> Unpin for Incoming<S> {}

impl<S: RecvStream> http_body::Body for Incoming<S> {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let read = ready!(self.get_mut().0.poll_recv_data(context));
        let data = read.map(|data| data.map(|mut d| d.copy_to_bytes(d.remaining())));
        Poll::Ready(data.transpose().map(|d| d.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, SignatureScheme};

    use super::*;
    use crate::backend::serve::Serving;

    /// Accepts every certificate, as `curl --insecure` does.
    #[derive(Debug)]
    struct Any;

    impl ServerCertVerifier for Any {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, rustls::Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            let all = ring::default_provider().signature_verification_algorithms;
            all.supported_schemes()
        }
    }

    /// Sends a request with this body. Returns the response's head and body.
    async fn ask(to: SocketAddr, request: Request<()>, body: &str) -> (Response<()>, Vec<u8>) {
        let provider = Arc::new(ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Any))
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
        let connection = endpoint.connect(to, "server").unwrap().await.unwrap();
        let connection = h3_quinn::Connection::new(connection);
        let (mut driver, mut sender) = h3::client::new(connection).await.unwrap();
        let driving = tokio::spawn(async move { driver.wait_idle().await });
        let mut stream = sender.send_request(request).await.unwrap();
        if !body.is_empty() {
            stream
                .send_data(Bytes::from(body.to_owned()))
                .await
                .unwrap();
        }
        stream.finish().await.unwrap();
        let head = stream.recv_response().await.unwrap();
        let mut whole = Vec::new();
        while let Some(mut data) = stream.recv_data().await.unwrap() {
            whole.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        drop(sender);
        driving.abort();
        (head, whole)
    }

    #[test]
    fn the_third_version_answers_as_the_others_do() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("2kB"), "a file").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let quic = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = quic.local_addr().unwrap();
        let _serving = Serving::on(listener, Some(quic), dir.path().into()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let exchange = |method: Method, path: &str, body: &str| {
            let request = Request::builder().method(method);
            let request = request.uri(format!("https://server{path}"));
            runtime.block_on(ask(address, request.body(()).unwrap(), body))
        };
        let (head, body) = exchange(Method::GET, "/3MB", "");
        assert_eq!((head.status().as_u16(), body.len()), (200, 3_000_000));
        assert_eq!(head.headers()[header::CONTENT_LENGTH], "3000000");
        assert!(body.iter().all(|&b| b == 0));
        assert_eq!(exchange(Method::GET, "/2kB", "").1, b"a file");
        assert_eq!(exchange(Method::GET, "/nothing", "").0.status(), 404);
        let (chunked, hidden) = exchange(Method::GET, "/3kB?chunked", "");
        assert_eq!(hidden.len(), 3000);
        assert!(!chunked.headers().contains_key(header::CONTENT_LENGTH));
        let (named, none) = exchange(Method::HEAD, "/3kB", "");
        assert!(none.is_empty() && named.headers()[header::CONTENT_LENGTH] == "3000");
        let sent = "x".repeat(50_000);
        assert_eq!(exchange(Method::POST, "/upload", &sent).1, b"50000\n");
    }
}
