//! Warnings about the tapped link, of which a model should hold nothing.

use swell_base::{Code, Dur, Warning};

use crate::counts::Counts;
use crate::paths::{Delayed, Limited, Untold};

pub(super) fn warnings(c: &Counts) -> Vec<Warning> {
    let mut w = Vec::new();
    if c.queues != [Dur::ZERO; 2] {
        let queues = c.queues.map(|d| d.as_secs_f64() * 1e3);
        w.push(Warning::note(
            Code::LinkQueue,
            format!(
                "all hosts answered late at the same times, by {:.1} ms left of the tap and {:.1} ms right of it in the \
                 mean: the queue of the tapped link, or of a line that they share before it. It is taken out of round trips",
                queues[0], queues[1]
            ),
        ));
    }
    for (side, lines) in ["left", "right"].into_iter().zip(&c.lines) {
        for (way, line) in ["from", "to"].into_iter().zip(lines) {
            w.extend(line.map(|line| rate(side, way, &line)));
            let paced = line.filter(|line| line.paced);
            w.extend(paced.map(|full| spaced(side, way, &full)));
        }
    }
    for (side, losses) in ["left", "right"].into_iter().zip(&c.untold) {
        for (way, untold) in ["from", "to"].into_iter().zip(losses) {
            w.extend(untold.map(|untold| of_full(side, way, &untold)));
        }
    }
    for (side, delayed) in ["left", "right"].into_iter().zip(&c.delayed) {
        w.extend(delayed.map(|delayed| delay(side, &delayed)));
    }
    if let Some([given, most]) = c.link_rtt {
        w.push(Warning::warning(
            Code::LinkRtt,
            format!(
                "`--link-rtt` is {given}, but the nearest hosts left and right of the tap are only {most} apart: so \
                 much is taken out of round trips, and some are zero now"
            ),
        ));
    }
    w
}

/// What is known about a rate that hosts of a side never exceed together.
fn rate(side: &str, way: &str, line: &Limited) -> Warning {
    let Limited { rate, hosts, .. } = line;
    let [own, all] = hosts;
    if !line.shared {
        return Warning::warning(
            Code::LinkRate,
            format!(
                "{own} of {all} hosts {side} of the tap have a capacity of {rate} ({way} them), and all together never \
                 exceed it: the trace does not tell whether it is the tapped link's or that of their own lines. It is taken \
                 as theirs, so on a faster link this traffic is no faster. Name the link's rate (`--link-rate`)"
            ),
        );
    }
    let text = format!(
        "hosts {side} of the tap fill {rate} ({way} them) together and never exceed it: the tapped link, or a line that \
         they share before it. It is taken out of the paths of {own} hosts, with the losses in its queue"
    );
    match line.one {
        true => Warning::warning(
            Code::LinkRate,
            format!(
                "{text}. One host has nearly all of these packets: if its own line is slower than the tapped link, name the \
                 link's rate (`--link-rate`)"
            ),
        ),
        false => Warning::note(Code::LinkRate, text),
    }
}

/// A full line on which senders space their packets.
fn spaced(side: &str, way: &str, line: &Limited) -> Warning {
    Warning::warning(
        Code::PacedSenders,
        format!(
            "packets {way} hosts {side} of the tap wait for a line of {} all the time, and yet no sender lets several packets \
             go at once: senders pace them, as BBR does. The model does not hold their congestion control, and they are \
             played with that of the experiment: if they use BBR, write `tcp = {{ congestion = \"bbr\" }}` in the background",
            line.rate
        ),
    )
}

/// Round trips that may hold the delay of a queue.
fn delay(side: &str, delayed: &Delayed) -> Warning {
    let Delayed { rate, most, hosts } = delayed;
    let [own, all] = hosts;
    let most = most.as_secs_f64() * 1e3;
    Warning::warning(
        Code::LinkDelay,
        format!(
            "a line of {rate} {side} of the tap is full all the time, and its queue is never seen empty: of the round trips of \
             {own} of {all} hosts, up to {most:.1} ms may be its delay and not their distance. In another network, this \
             traffic may be slower to send and to recover than that of the trace, and do less harm. A trace with times at \
             which the line is not full would tell"
        ),
    )
}

/// Losses of a line that is hardly ever less than full.
fn of_full(side: &str, way: &str, untold: &Untold) -> Warning {
    let Untold { rate, given, lost } = untold;
    let then = match given {
        true => "",
        false => " If the tapped link is faster, name its rate (`--link-rate`).",
    };
    Warning::warning(
        Code::LinkLosses,
        format!(
            "hosts {side} of the tap fill {rate} ({way} them) nearly all the time, and {:.1} % of their packets are lost: \
             the trace does not tell whether in the queue of that line or elsewhere. They are taken as the queue's, but for \
             what single hosts lose far more than the others: on a faster link, nothing else is lost.{then} A trace with \
             times at which the line is not full would tell",
            100.0 * lost
        ),
    )
}
