//! CPU time taken by others, and packets dropped by this machine's network stack before they reached a host.

use std::fs;
use std::ops::Sub;
use std::path::Path;
use std::time::Duration;

/// Counters of the machine; the difference of two values describes the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Time that the hypervisor gave to other virtual machines, summed over processors (proc_stat(5), `steal`).
    pub stolen: Duration,
    /// Time for which the CPU limits of this process's control group, and of the groups above it, stopped the groups'
    /// processes (`throttled_usec`, or `throttled_time` in version 1). A stop by two limits at once counts twice.
    pub throttled: Duration,
    /// Packets that the kernel dropped because a processor's backlog was full (`net.core.netdev_max_backlog`), in all
    /// namespaces of the machine.
    pub backlog_drops: u64,
}

impl Pressure {
    /// The current values. Counters that cannot be read are zero.
    pub fn now() -> Pressure {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Pressure {
            stolen: stolen(&read("/proc/stat"), ticks_per_second()),
            throttled: throttled(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")),
            backlog_drops: backlog_drops(&read("/proc/net/softnet_stat")),
        }
    }
}

impl Sub for Pressure {
    type Output = Pressure;

    fn sub(self, before: Pressure) -> Pressure {
        Pressure {
            stolen: self.stolen.saturating_sub(before.stolen),
            throttled: self.throttled.saturating_sub(before.throttled),
            backlog_drops: self.backlog_drops.saturating_sub(before.backlog_drops),
        }
    }
}

fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// The eighth number of the line for all processors, in clock ticks.
fn stolen(stat: &str, hz: u64) -> Duration {
    let line = stat.lines().find_map(|l| l.strip_prefix("cpu "));
    let ticks = line.and_then(|l| l.split_whitespace().nth(7)?.parse::<u64>().ok());
    Duration::from_micros(ticks.unwrap_or(0).saturating_mul(1_000_000) / hz)
}

/// The throttled time of the control group named in this file of cgroups(7), in either version. `root` is where the
/// groups are mounted.
///
/// A limit on a group higher up stops this process, too, and only that group's counter shows it. The counters are added
/// up, so that their difference over an interval shows the stops of every level.
fn throttled(groups: &str, root: &Path) -> Duration {
    let of = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (top, key, scale) = match controllers {
            "" => (root.to_owned(), "throttled_usec", 1000),
            c if c.split(',').any(|c| c == "cpu") => (root.join("cpu"), "throttled_time", 1),
            _ => return None,
        };
        let value = |group: &Path| {
            let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
            let mut lines = text.lines();
            lines.find_map(|l| l.strip_prefix(key)?.trim().parse::<u64>().ok())
        };
        let own = top.join(path.trim_start_matches('/'));
        let levels = own.ancestors().take_while(|group| group.starts_with(&top));
        let sum = levels.filter_map(value).fold(0, u64::saturating_add);
        Some(Duration::from_nanos(sum.saturating_mul(scale)))
    };
    groups.lines().filter_map(of).sum()
}

/// The second number of each processor's line, in hexadecimal (net/core/net-procfs.c, `softnet_seq_show`).
fn backlog_drops(softnet: &str) -> u64 {
    let dropped = |l: &str| u64::from_str_radix(l.split_whitespace().nth(1)?, 16).ok();
    softnet.lines().filter_map(dropped).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_the_kernel_prints_them() {
        let stat = "cpu  10 0 20 3000 5 0 7 250 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(stolen(stat, 100), Duration::from_millis(2500));
        assert_eq!(stolen("", 100), Duration::ZERO);
        assert_eq!(
            backlog_drops("0000000a 0000000b 00\n00000001 00000010 00\n"),
            27
        );
    }

    #[test]
    fn limits_of_all_groups_above_count() {
        let root = tempfile::tempdir().unwrap();
        for (group, text) in [
            ("pod", "usage_usec 9\nthrottled_usec 40\n"),
            ("pod/own", "nr_throttled 7\nthrottled_usec 2\n"),
            ("pod/other", "throttled_usec 100\n"),
            ("cpu/old", "throttled_time 5000\n"),
        ] {
            let group = root.path().join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cpu.stat"), text).unwrap();
        }
        for (groups, us) in [
            ("0::/pod/own\n", 42),
            ("0::/pod\n", 40),
            ("0::/\n", 0),
            ("4:memory:/pod\n3:cpu,cpuacct:/old\n", 5),
            ("0::/no/such/group\nnonsense\n", 0),
        ] {
            let time = throttled(groups, root.path());
            assert_eq!(time, Duration::from_micros(us), "{groups}");
        }
    }

    #[test]
    fn a_difference_is_never_negative() {
        let one = Pressure {
            backlog_drops: 1,
            ..Pressure::default()
        };
        let two = Pressure {
            backlog_drops: 2,
            ..Pressure::default()
        };
        assert_eq!((two - one).backlog_drops, 1);
        assert_eq!((one - two).backlog_drops, 0);
    }
}
