//! Memory of processes, as the kernel counts it.

/// Peak resident memory of a process in bytes, if the system reports it (Linux: `VmHWM`, proc_pid_status(5)). `process`
/// is its id, or `self`.
pub fn peak(process: impl std::fmt::Display) -> Option<u64> {
    status(process, "VmHWM:")
}

/// Resident memory of a process in bytes that holds pages of files, mostly of its program (Linux: `RssFile`). Processes
/// with the same program share these pages, and the kernel reclaims them at need. `process` as for [`peak`].
pub fn of_files(process: impl std::fmt::Display) -> Option<u64> {
    status(process, "RssFile:")
}

fn status(process: impl std::fmt::Display, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_peak_and_process_zero_has_none() {
        let own = peak("self").unwrap();
        assert!((1 << 20..1 << 40).contains(&own), "{own}");
        assert_eq!(peak(0), None);
        let program = of_files("self").unwrap();
        let peak = peak("self").unwrap();
        assert!((1 << 12..=peak).contains(&program), "{program} {peak}");
    }
}
