//! A certificate authority for agents, and identities that persist.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use super::tls::{Identity, TlsError};

/// File names of an authority in its directory: certificate and key.
const AUTHORITY: [&str; 2] = ["ca.pem", "ca.key"];
/// File names of an agent's identity in its directory: certificate and key.
const AGENT: [&str; 2] = ["agent.pem", "agent.key"];
/// Certificates become valid this long before now, because clocks differ.
const BEFORE: Duration = Duration::from_secs(86_400);

/// Creates a certificate authority that is valid for `days`, in a directory that is created if necessary. Returns the
/// path of its certificate.
///
/// # Errors
/// If the directory already has an authority, or the files cannot be written.
pub fn make_authority(dir: &Path, days: u32) -> Result<PathBuf, TlsError> {
    let key = KeyPair::generate().map_err(wrong)?;
    let certificate = of_authority(days)?.self_signed(&key).map_err(wrong)?;
    write_pair(dir, AUTHORITY, &certificate.pem(), &key.serialize_pem())
}

/// The subject name of every authority. Authorities differ by their keys, so that signing requires reading only the
/// key.
const NAME: &str = "swell agents";

fn of_authority(days: u32) -> Result<CertificateParams, TlsError> {
    let mut params = params(Vec::new(), NAME, days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params)
}

/// Issues a certificate, signed by the authority in `authority`, for an agent with these `names` (host names and
/// addresses). It is valid for `days`. Certificate and key are written to `dir`, for [`kept`]. Returns the agent's
/// identity.
///
/// # Errors
/// If there is no authority, a name is invalid, `dir` already has an identity, or the files cannot be written.
pub fn enrol(
    authority: &Path,
    names: &[String],
    dir: &Path,
    days: u32,
) -> Result<Identity, TlsError> {
    let signing = KeyPair::from_pem(&read_secret(&authority.join(AUTHORITY[1]))?);
    let issuer = Issuer::new(of_authority(days)?, signing.map_err(wrong)?);
    let own = KeyPair::generate().map_err(wrong)?;
    let first = names.first().map_or("", String::as_str);
    let mut params = params(names.to_vec(), first, days)?;
    params.use_authority_key_identifier_extension = true;
    // An agent is a client of TLS when it dials out to its controller. A controller that agents dial is a server.
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let issued = params.signed_by(&own, &issuer).map_err(wrong)?;
    write_pair(dir, AGENT, &issued.pem(), &own.serialize_pem())?;
    kept(dir)
}

/// Reads the identity in a directory. If there is none, creates a self-signed one and stores it there.
///
/// # Errors
/// If the files are invalid, other users may read the key, or the files cannot be written.
pub fn kept(dir: &Path) -> Result<Identity, TlsError> {
    let [certificate, key] = AGENT.map(|file| dir.join(file));
    if !certificate.exists() && !key.exists() {
        let own = KeyPair::generate().map_err(wrong)?;
        let name = "swell-agent".to_owned();
        let made = CertificateParams::new(vec![name]).map_err(wrong)?;
        let made = made.self_signed(&own).map_err(wrong)?;
        write_pair(dir, AGENT, &made.pem(), &own.serialize_pem())?;
    }
    read_secret(&key)?;
    Identity::read(&certificate, &key)
}

fn wrong(error: rcgen::Error) -> TlsError {
    TlsError::Certificate(error.to_string())
}

/// Longest validity of a certificate, days: a century.
const LONGEST: u32 = 36_500;

fn params(names: Vec<String>, name: &str, days: u32) -> Result<CertificateParams, TlsError> {
    if !(1..=LONGEST).contains(&days) {
        return Err(TlsError::Certificate(format!(
            "it would be valid for {days} days; 1 to {LONGEST} are possible"
        )));
    }
    if let Some(bad) = names.iter().find(|n| !is_host(n)) {
        return Err(TlsError::Certificate(format!(
            "`{bad}` is neither a host name nor an address"
        )));
    }
    let mut params = CertificateParams::new(names).map_err(wrong)?;
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = date_time_ymd(1970, 1, 1) + now.unwrap_or_default();
    params.not_before = now - BEFORE;
    params.not_after = now + Duration::from_secs(86_400) * days;
    Ok(params)
}

/// Whether `name` is an address or a host name (RFC 1123, section 2.1).
fn is_host(name: &str) -> bool {
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    name.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(label))
}

fn failed(path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File {
        path: path.display().to_string(),
        reason: reason.to_string(),
    }
}

fn read(path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|e| failed(path, e))
}

/// Reads a file that other users must not be able to read.
fn read_secret(path: &Path) -> Result<String, TlsError> {
    let mode = std::fs::metadata(path).map_err(|e| failed(path, e))?.mode();
    if mode & 0o004 != 0 {
        return Err(failed(
            path,
            "everyone on this machine can read it: chmod o-rwx",
        ));
    }
    read(path)
}

/// Writes a certificate and its key (readable by the owner only), unless they exist. Returns the path of the
/// certificate.
fn write_pair(
    dir: &Path,
    files: [&str; 2],
    certificate: &str,
    key: &str,
) -> Result<PathBuf, TlsError> {
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, e))?;
    let [of_certificate, of_key] = files.map(|file| dir.join(file));
    // Neither is written beside another of its kind, which would not match it.
    for path in [&of_certificate, &of_key] {
        if path.symlink_metadata().is_ok() {
            return Err(failed(path, THERE));
        }
    }
    write_new(&of_key, key, 0o600)?;
    if let Err(error) = write_new(&of_certificate, certificate, 0o644) {
        let _ = std::fs::remove_file(&of_key);
        return Err(error);
    }
    Ok(of_certificate)
}

const THERE: &str = "it is there already, and stays as it is";

/// Writes a file that does not exist. If that fails, nothing of it is left.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    let mut file = made.map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => failed(path, THERE),
        _ => failed(path, e),
    })?;
    file.write_all(text.as_bytes()).map_err(|e| {
        let _ = std::fs::remove_file(path);
        failed(path, e)
    })
}
