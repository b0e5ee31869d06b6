//! Settings of a network namespace (sysctl(8)).

use std::fs;
use std::io;
use std::path::Path;

/// Writes a setting of the calling thread's network namespace.
pub fn write_setting(path: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new("/proc/sys/net").join(path), value)
}

/// Raises the maximum of TCP's buffers to at least this many bytes (tcp(7): minimum, default, maximum).
pub fn raise_buffers(bytes: u64) -> io::Result<()> {
    for path in ["ipv4/tcp_rmem", "ipv4/tcp_wmem"] {
        let text = fs::read_to_string(Path::new("/proc/sys/net").join(path))?;
        let sizes: Vec<&str> = text.split_whitespace().collect();
        if let [least, first, largest] = sizes[..]
            && largest.parse::<u64>().is_ok_and(|now| now < bytes)
        {
            write_setting(path, &format!("{least} {first} {bytes}"))?;
        }
    }
    Ok(())
}
