//! `swell set` and `swell top`: requests to a running emulation over a socket in its temporary directory.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use swell_base::{Bytes, Direction, Dur, QueueLimit, Rate, Time};
use swell_emulate::LinkSetting;
use swell_emulate::{Control, Seen};
use swell_host::scratch;

pub(crate) mod answer;

use crate::fail::Fail;
use crate::under::args::loss;
use crate::{out, pairs, tables};
use answer::Answer;

/// The socket's name.
const SOCKET: &str = "control";
/// Limits on the size of a request in bytes, and on the time to receive it.
const MOST: u64 = 4096;
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a setting is checked for completion: emulations poll every few milliseconds.
const LOOK: Duration = Duration::from_millis(2);
/// How long to wait for the first list of flows: emulations publish one every tenth of a second.
const LISTING: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
#[command(
    after_help = "What is set holds from the next packet on, until it is set again. A journal (--record) keeps it.\n\n  swell set rate=5Mbit delay=80ms\n  swell set direction=down loss=ge:0.01,0.3 queue=50pkt"
)]
pub(crate) struct SetArgs {
    /// rate, delay (one way), loss, queue, as the options of `under` have them; direction=up or direction=down for
    /// one direction only.
    #[arg(required = true, value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Show it once instead of every second.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    which: Which,
}

/// Which emulation is meant.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The number of its process, if several run. Default within an emulation: its own.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

/// A request.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    /// KEY=VALUE, as typed.
    Set(Vec<String>),
    #[default]
    Look,
}

/// Listens on a socket in the directory until the process ends. If the socket cannot be created, the emulation runs
/// without this control. `follows_flows`: the emulation knows the flows of programs.
pub(crate) fn serve(scratch: &Path, title: &str, follows_flows: bool) -> Arc<Control> {
    let control = Arc::new(Control::default());
    if let Ok(listener) = UnixListener::bind(scratch.join(SOCKET)) {
        let (theirs, title) = (Arc::clone(&control), title.to_owned());
        let serving = move || {
            for stream in listener.incoming().flatten() {
                // A client that disconnects ends only its own request.
                let _ = answer(&stream, &theirs, &title, follows_flows);
            }
        };
        let _ = std::thread::Builder::new()
            .name("control".into())
            .spawn(serving);
    }
    control
}

fn answer(
    mut stream: &UnixStream,
    control: &Control,
    title: &str,
    follows_flows: bool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST)).read_line(&mut line)?;
    let done = serde_json::from_str(&line)
        .map_err(|e| e.to_string())
        .and_then(|request| obey(request, control));
    let mut answer = Answer {
        title: title.to_owned(),
        follows_flows,
        ..Answer::of(&listed(control))
    };
    match done {
        Ok(Some(set)) => answer.at = set.since(Time::ZERO).as_secs_f64(),
        Ok(None) => {}
        Err(error) => answer.error = Some(error),
    }
    stream.write_all(serde_json::to_string(&answer)?.as_bytes())
}

/// The state with its flows. Whoever compares two answers would otherwise take what a flow has carried since it began for
/// what it carried between them.
fn listed(control: &Control) -> Seen {
    let mut seen = control.seen();
    let mut left = LISTING.as_millis() / LOOK.as_millis();
    while !seen.listed && left > 0 {
        left -= 1;
        sleep(LOOK);
        seen = control.seen();
    }
    seen
}

/// Does what is asked. Returns when changes of settings take effect.
fn obey(request: Request, control: &Control) -> Result<Option<Time>, String> {
    let Request::Set(words) = request else {
        return Ok(None);
    };
    let (directions, setting) = parsed(&words)?;
    for direction in directions {
        control.set(direction, setting);
    }
    let mut left = PATIENCE.as_millis() / LOOK.as_millis();
    while !control.done() {
        if left == 0 {
            // Otherwise it would hold for the next program, although this request failed.
            if control.withdraw() {
                return Err("no program runs there now; nothing was set".into());
            }
            break;
        }
        left -= 1;
        sleep(LOOK);
    }
    Ok(control.set_at())
}

/// Parses settings as typed.
fn parsed(words: &[String]) -> Result<(Vec<Direction>, LinkSetting), String> {
    let unit = |e: swell_base::UnitError| e.to_string();
    let mut directions = Direction::BOTH.to_vec();
    let mut setting = LinkSetting::default();
    for (key, value) in pairs::pairs(words.iter().map(String::as_str))? {
        match key {
            "rate" => {
                let rate: Rate = value.parse().map_err(unit)?;
                if rate.bps() == 0 {
                    return Err(
                        "a link of rate 0 would stand still for ever; loss=1 loses everything"
                            .into(),
                    );
                }
                setting.rate = Some(rate);
            }
            "delay" => {
                let delay: Dur = value.parse().map_err(unit)?;
                if delay > Dur::from_millis(3_600_000) {
                    return Err("a delay of more than an hour".into());
                }
                setting.delay = Some(delay);
            }
            "loss" => setting.loss = Some(loss(value)?),
            "queue" => {
                let limit: QueueLimit = value.parse().map_err(unit)?;
                let none = [
                    QueueLimit::Packets(0),
                    QueueLimit::Bytes(Bytes(0)),
                    QueueLimit::Time(Dur::ZERO),
                ];
                if none.contains(&limit) {
                    return Err(
                        "a queue that holds nothing drops every packet that has to wait: write at least 1pkt"
                            .into(),
                    );
                }
                if matches!(limit, QueueLimit::Bdp(_)) {
                    return Err(
                        "here a queue is in packets, bytes or time: 50pkt, 64KiB, 100ms".into(),
                    );
                }
                setting.queue = Some(limit);
            }
            "direction" => {
                directions = match value {
                    "up" => vec![Direction::Up],
                    "down" => vec![Direction::Down],
                    "both" => Direction::BOTH.to_vec(),
                    _ => return Err(format!("`{value}` is no direction: up, down, both")),
                }
            }
            _ => {
                return Err(format!(
                    "nothing is called `{key}`: rate, delay, loss, queue, direction"
                ));
            }
        }
    }
    if setting == LinkSetting::default() {
        return Err("nothing is set: rate=5Mbit".into());
    }
    Ok((directions, setting))
}

/// Sends a request to the emulation at a socket.
fn ask(socket: &Path, request: &Request) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE * 2))?;
    stream.write_all(format!("{}\n", serde_json::to_string(request)?).as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// Finds the socket of the selected emulation.
fn found(which: &Which) -> Result<PathBuf, Fail> {
    // A program in an emulated network means that network, whatever else runs on this machine.
    let own = std::env::var(swell_host::OWNER).ok();
    let own = own
        .and_then(|pid| pid.parse().ok())
        .filter(|_| which.pid.is_none());
    let pid = which.pid.or(own);
    let sockets = scratch::live().into_iter().map(|dir| dir.join(SOCKET));
    let live = sockets.filter_map(|s| Some((ask(&s, &Request::Look).ok()?, s)));
    let mut live: Vec<(Answer, PathBuf)> = live
        .filter(|(a, _)| pid.is_none_or(|pid| pid == a.pid))
        .collect();
    match live.len() {
        1 => Ok(live.remove(0).1),
        0 if own.is_some() => Err(Fail::usage(
            "the network around this program cannot be set or shown",
        )
        .hint("that of a comparison does not change; --pid PID means another one")),
        0 => {
            Err(Fail::usage("no emulation that can be set or shown runs here")
                .hint("swell under BACKGROUND -- COMMAND; a comparison (--compare) is left alone, so that all its runs are alike"))
        }
        _ => {
            let each = |(a, _): &(Answer, PathBuf)| format!("--pid {}   {}", a.pid, a.title);
            let all: Vec<String> = live.iter().map(each).collect();
            Err(Fail::usage("several emulations run here").hint(all.join("\n      ")))
        }
    }
}

pub(crate) fn set(args: &SetArgs, json: bool) -> Result<(), Fail> {
    // Report bad settings before contacting any emulation.
    parsed(&args.settings).map_err(Fail::usage)?;
    let socket = found(&args.which)?;
    let answer = ask(&socket, &Request::Set(args.settings.clone())).map_err(gone)?;
    if let Some(error) = answer.error {
        return Err(Fail::failed(error));
    }
    if json {
        out::json(&serde_json::to_value(&answer).map_err(Fail::failed)?);
    } else {
        // The emulation may have ended since.
        let now = ask(&socket, &Request::Look).map_or(answer.at, |now| now.at);
        out::say(&took_effect(&answer, now));
    }
    Ok(())
}

/// A change that is this far in the future, in seconds, has not taken effect yet. The time of an answer is a tenth of a second
/// old, or more on a busy machine.
const FUTURE: f64 = 1.0;

/// When a change takes effect that was made before `now`, in seconds. A packet in transmission keeps its rate, and a slow one
/// may take minutes.
fn took_effect(set: &Answer, now: f64) -> String {
    let (wait, title) = (set.at - now, &set.title);
    match wait > FUTURE {
        true => {
            format!("takes effect in {wait:.1} s, after the packet in transmission, in {title}")
        }
        false => format!("set at {:.1} s of {title}", set.at),
    }
}

fn gone(e: io::Error) -> Fail {
    Fail::failed(format!("the emulation does not answer: {e}"))
}

pub(crate) fn top(args: &TopArgs, json: bool) -> Result<(), Fail> {
    let socket = found(&args.which)?;
    let mut before = ask(&socket, &Request::Look).map_err(gone)?;
    loop {
        sleep(Duration::from_secs(1));
        let now = match ask(&socket, &Request::Look) {
            Ok(now) => now,
            // The emulation has ended.
            Err(_) if !args.once => return Ok(()),
            Err(e) => return Err(gone(e)),
        };
        if json {
            out::json(&serde_json::to_value(&now).map_err(Fail::failed)?);
        } else {
            let clear = if args.once { "" } else { "\x1b[H\x1b[2J" };
            out::data(&format!("{clear}{}", tables::top::top(&before, &now)));
        }
        if args.once {
            return Ok(());
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::answer::{Flow, since};
    use super::*;

    fn typed(text: &str) -> Result<(Vec<Direction>, LinkSetting), String> {
        let pairs: Vec<String> = text.split(' ').map(str::to_owned).collect();
        parsed(&pairs)
    }

    #[test]
    fn settings_are_read_as_options_are() {
        let (directions, setting) = typed("rate=5Mbit direction=down loss=1% queue=50pkt").unwrap();
        assert_eq!(directions, [Direction::Down]);
        assert_eq!(setting.rate, Some(Rate::from_bps(5_000_000)));
        assert_eq!(setting.queue, Some(QueueLimit::Packets(50)));
        assert!(setting.loss.is_some() && setting.delay.is_none());
        assert_eq!(typed("delay=3ms").unwrap().0, Direction::BOTH);
        for wrong in [
            "rate=0",
            "rate",
            "speed=1",
            "queue=1BDP",
            "queue=0pkt",
            "queue=0B",
            "queue=0ms",
            "direction=up",
            "direction=left rate=1Mbit",
            "delay=2h",
            "rate=1Mbit rate=2Mbit",
        ] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_emulation_of_an_earlier_version_is_understood() {
        let mut said = serde_json::to_value(Answer::default()).unwrap();
        said.as_object_mut().unwrap().remove("follows_flows");
        let answer: Answer = serde_json::from_value(said).unwrap();
        assert!(answer.follows_flows);
    }

    #[test]
    fn a_change_that_waits_for_a_packet_is_not_called_set() {
        let set = Answer {
            at: 123.1,
            title: "none".into(),
            ..Answer::default()
        };
        assert_eq!(took_effect(&set, 123.2), "set at 123.1 s of none");
        let later = took_effect(&set, 4.5);
        assert!(
            later.starts_with("takes effect in 118.6 s, after"),
            "{later}"
        );
    }

    /// The flows of the first answer are there, so that the next one is compared with them.
    #[test]
    fn an_answer_waits_for_the_first_list_of_flows() {
        let control = Arc::new(Control::default());
        assert!(!control.seen().listed);
        let begun = std::time::Instant::now();
        assert!(!listed(&control).listed, "nothing runs");
        assert!(begun.elapsed() >= LISTING);
    }

    #[test]
    fn what_could_not_be_set_is_not_set_later() {
        let control = Control::default();
        let set = || Request::Set(vec!["rate=1Mbit".into()]);
        let error = obey(set(), &control).unwrap_err();
        assert!(error.contains("nothing was set"), "{error}");
        assert!(control.done() && !control.withdraw());
    }

    #[test]
    fn bytes_since_are_those_of_the_flow_of_that_name() {
        let answer = |flows: &[(&str, [u64; 2])]| Answer {
            flows: flows
                .iter()
                .map(|&(name, bytes)| Flow {
                    name: name.into(),
                    age: 1.0,
                    bytes,
                    retransmissions: [0; 2],
                })
                .collect(),
            ..Answer::default()
        };
        let before = answer(&[("a", [10, 20]), ("gone", [7, 7]), ("again", [50, 60])]);
        // The last one is another connection with the name of an earlier one.
        let now = answer(&[("new", [1, 2]), ("a", [15, 20]), ("again", [3, 70])]);
        assert_eq!(since(&before, &now), [[1, 2], [5, 0], [0, 10]]);
    }
}
