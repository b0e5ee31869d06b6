//! How a processor spent its time, as the kernel counts it (proc_stat(5)).

use std::fs;

use swell_base::Dur;

/// Times since boot, in hundredths of a second (`USER_HZ`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    /// Idle time. It is measured where idle processors have no tick (kernel/time/tick-sched.c,
    /// `get_cpu_idle_time_us`).
    pub idle: u64,
    /// Time in programs, and in the kernel on their behalf; sampled by the tick.
    pub programs: u64,
    /// Time that the hypervisor gave to other machines.
    pub stolen: u64,
}

impl Processor {
    /// The share of `span` since `before` that was not spent in programs, idle or in other machines. This is
    /// interrupts and the work that follows them, such as forwarding. Work that follows an interrupt of an idle
    /// processor has no counter of its own, so the share is computed as the remainder.
    pub fn interrupts(&self, before: &Processor, span: Dur) -> f64 {
        let had = |p: &Processor| p.idle + p.programs + p.stolen;
        let elsewhere = had(self).saturating_sub(had(before)) as f64 / 100.0;
        (1.0 - elsewhere / span.as_secs_f64()).clamp(0.0, 1.0)
    }
}

/// The times of a processor, counted from 0; `None` if they cannot be read.
pub(super) fn read(processor: usize) -> Option<Processor> {
    parse(&fs::read_to_string("/proc/stat").ok()?, processor)
}

fn parse(text: &str, processor: usize) -> Option<Processor> {
    let name = format!("cpu{processor} ");
    let fields = text.lines().find_map(|line| line.strip_prefix(&name))?;
    let n: Vec<u64> = fields
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, _irq, _softirq, stolen, ..] = n[..] else {
        return None;
    };
    Some(Processor {
        idle: idle + iowait,
        programs: user + nice + system,
        stolen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_processor() {
        let text =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\n";
        let one = parse(text, 0).unwrap();
        assert_eq!((one.idle, one.programs, one.stolen), (45, 6, 8));
        let before = parse(text, 1).unwrap();
        // 59 hundredths of a second minus 6.
        let share = one.interrupts(&before, Dur::from_secs(1));
        assert!((share - 0.47).abs() < 1e-12, "{share}");
        assert_eq!(one.interrupts(&before, Dur::from_millis(100)), 0.0);
        assert_eq!(parse(text, 2), None);
        assert_eq!(parse("cpu0 1 2", 0), None);
    }
}
