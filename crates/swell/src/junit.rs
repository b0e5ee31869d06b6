//! Writes a verdict as JUnit test cases, a format that CI systems display.

use std::fmt::Write as _;
use std::path::Path;

use swell_experiment::Results;
use swell_experiment::file::File;
use swell_verdict::{Answer, ForegroundVerdict, Verdict};

use crate::fail::Fail;
use crate::threshold::Threshold;
use crate::{interrupt, out, tables};

/// The outcome of a test case.
enum Outcome {
    Passed,
    /// The case gives no answer, for this reason.
    Skipped(String),
    Failed(String),
}

struct Case {
    class: String,
    name: String,
    outcome: Outcome,
    /// Additional output.
    output: String,
}

/// Whether the test cases go to standard output, which then has nothing else.
///
/// # Errors
/// If JSON is to be printed there, too.
pub(crate) fn is_printed(file: Option<&Path>, json: bool) -> Result<bool, Fail> {
    let printed = file.is_some_and(out::is_stdout);
    if printed && json {
        let fail = Fail::usage("--junit - and --json both print to standard output");
        return Err(fail.hint("name a file: --junit FILE"));
    }
    Ok(printed)
}

/// Writes `file`, or prints it if it is `-`: a test case for each foreground against each background, for each suite, and
/// for each threshold.
pub(crate) fn write(
    file: &Path,
    results: &Results,
    verdict: &Verdict,
    fail_if: &[Threshold],
) -> Result<(), Fail> {
    let cases = cases(&results.experiment, verdict, fail_if);
    let text = document(&results.manifest.name, &cases);
    if out::is_stdout(file) {
        out::data(text.trim_end());
        return Ok(());
    }
    interrupt::write(file, text.as_bytes())
}

fn cases(experiment: &File, verdict: &Verdict, fail_if: &[Threshold]) -> Vec<Case> {
    let mut cases = Vec::new();
    let asked = |f: &&ForegroundVerdict| !tables::is_silent(experiment, f);
    for foreground in verdict.foregrounds.iter().filter(asked) {
        let compared = foreground.backgrounds.iter().any(|b| b.matters.is_some());
        if foreground.application_failed && !compared {
            cases.push(Case {
                class: foreground.foreground.clone(),
                name: "works".into(),
                outcome: Outcome::Failed("the application fails".into()),
                output: tables::answers(foreground).trim_end().into(),
            });
        }
        for b in &foreground.backgrounds {
            let outcome = match b.matters {
                None if foreground.reference.is_some() => continue,
                None => Outcome::Skipped(
                    "nothing to compare with: the experiment has no background of kind none".into(),
                ),
                Some(_) if foreground.application_failed => {
                    Outcome::Failed("the application fails without background traffic".into())
                }
                Some(Answer::Unclear) => {
                    let reasons: Vec<&str> = b
                        .withheld
                        .iter()
                        .chain(&b.open)
                        .map(String::as_str)
                        .collect();
                    Outcome::Skipped(match reasons[..] {
                        [] => "not settled: the intervals decide nothing".into(),
                        _ => format!("not settled: {}", reasons.join("; ")),
                    })
                }
                Some(Answer::Yes | Answer::No) => Outcome::Passed,
            };
            cases.push(Case {
                class: foreground.foreground.clone(),
                name: format!("against {}", b.background),
                outcome,
                output: tables::answers(foreground).trim_end().into(),
            });
        }
        cases.extend(foreground.suite.as_ref().map(|suite| Case {
            class: foreground.foreground.clone(),
            name: format!("suite for {}", suite.target),
            outcome: match suite.settled {
                true => Outcome::Passed,
                false => Outcome::Skipped(
                    "not settled: whether a cheaper background is enough is open".into(),
                ),
            },
            output: tables::answers(foreground).trim_end().into(),
        }));
    }
    for threshold in fail_if {
        let crossed = threshold.crossed(experiment, verdict);
        cases.push(Case {
            class: "fail-if".into(),
            name: threshold.text().into(),
            outcome: match crossed.is_empty() {
                true => Outcome::Passed,
                false => Outcome::Failed(crossed.join("\n")),
            },
            output: String::new(),
        });
    }
    cases
}

fn document(suite: &str, cases: &[Case]) -> String {
    let count = |which: fn(&Outcome) -> bool| cases.iter().filter(|c| which(&c.outcome)).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuites>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\">",
        escaped(suite),
        cases.len(),
        count(|o| matches!(o, Outcome::Failed(_))),
        count(|o| matches!(o, Outcome::Skipped(_))),
    );
    for case in cases {
        let _ = write!(
            text,
            "<testcase classname=\"{}\" name=\"{}\">",
            escaped(&case.class),
            escaped(&case.name)
        );
        let _ = match &case.outcome {
            Outcome::Passed => Ok(()),
            Outcome::Skipped(why) => write!(text, "<skipped message=\"{}\"/>", escaped(why)),
            Outcome::Failed(why) => write!(text, "<failure message=\"{}\"/>", escaped(why)),
        };
        if !case.output.is_empty() {
            let _ = write!(text, "<system-out>{}</system-out>", escaped(&case.output));
        }
        text.push_str("</testcase>\n");
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

/// Escapes text for use between tags and in attributes. XML 1.0 (section 2.2) allows only these three control
/// characters.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(safe, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use swell_verdict::{Suite, Sureness};

    use super::*;

    /// An open suite has exit code 3, so a case says why.
    #[test]
    fn a_suite_is_a_case() {
        let file = swell_experiment::file::read(
            "name = 'x'\nnetwork = { rate = '10Mbit' }\nforeground = [{ name = 'page', kind = 'web', object = '1kB' }]\n\
             background = [{ name = 'none', kind = 'none' }]",
            "x",
        );
        let verdict = |settled| Verdict {
            foregrounds: vec![ForegroundVerdict {
                foreground: "page".into(),
                reference: None,
                backgrounds: Vec::new(),
                comparisons: Vec::new(),
                matters: Answer::Unclear,
                application_failed: false,
                parametric_enough: None,
                suite: Some(Suite {
                    target: "campus".into(),
                    candidates: Vec::new(),
                    cheapest: None,
                    settled,
                    replications_wanted: None,
                }),
                sureness: Sureness {
                    replications: 5,
                    widest: None,
                    warnings: 0,
                    replications_wanted: None,
                },
                sentence: String::new(),
                paragraphs: Vec::new(),
                doubts: Vec::new(),
            }],
            doubts: Vec::new(),
            margin: 0.1,
        };
        let file = file.unwrap();
        for settled in [true, false] {
            let cases = cases(&file, &verdict(settled), &[]);
            assert_eq!(cases.len(), 1);
            assert_eq!(cases[0].name, "suite for campus");
            assert_eq!(matches!(cases[0].outcome, Outcome::Passed), settled);
            assert_eq!(matches!(cases[0].outcome, Outcome::Skipped(_)), !settled);
        }
    }

    #[test]
    fn counts_and_outcomes_are_in_the_document_and_text_is_escaped() {
        let case = |name: &str, outcome| Case {
            class: "web".into(),
            name: name.into(),
            outcome,
            output: String::new(),
        };
        let text = document(
            "a \"b\"",
            &[
                case("against <poisson>", Outcome::Passed),
                case("p95 > 1", Outcome::Failed("one\ntwo \u{1}".into())),
                case("other", Outcome::Skipped("why & how".into())),
            ],
        );
        assert!(text.contains(
            "name=\"a &quot;b&quot;\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""
        ));
        assert!(text.contains("against &lt;poisson&gt;"));
        assert!(text.contains("<failure message=\"one&#10;two \u{fffd}\"/>"));
        assert!(text.contains("<skipped message=\"why &amp; how\"/>"));
    }
}
