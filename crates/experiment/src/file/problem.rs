//! Problems in a file, with their positions.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// A problem in an experiment file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column of the first affected character, from 1.
    pub column: usize,
    /// Number of affected characters, at least 1.
    pub width: usize,
    /// The key, dotted: `network.rate`, `background[1].model`. Empty for a syntax error.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// The line of the file.
    pub source: String,
}

impl Problem {
    /// A problem at the byte range `span` of `text`.
    pub(super) fn at(
        text: &str,
        span: Range<usize>,
        key: String,
        message: String,
        hint: Option<String>,
    ) -> Problem {
        let start = floor_char(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let end = floor_char(text, span.end).clamp(start, line_end);
        Problem {
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            width: text[start..end].chars().count().max(1),
            key,
            message: shortened(message),
            hint: hint.map(shortened),
            source: text[line_start..line_end].trim_end().to_owned(),
        }
    }
}

/// Most characters of a message, which may have what was written in it.
const MOST_SAID: usize = 1000;

/// A message without its middle, if that is long.
fn shortened(message: String) -> String {
    let Some((half, _)) = message.char_indices().nth(MOST_SAID / 2) else {
        return message;
    };
    let mut last = message.char_indices().rev();
    match last.nth(MOST_SAID / 2) {
        Some((end, _)) if end > half => format!("{} ... {}", &message[..half], &message[end..]),
        _ => message,
    }
}

/// Most characters of a line that are shown.
const MOST_SHOWN: usize = 200;
/// Most of them before what is wrong.
const MOST_BEFORE: usize = 60;

impl Problem {
    /// The line, or what is around the problem in a long one; the space before the problem in it; and how many
    /// characters to mark.
    fn shown(&self) -> (String, String, usize) {
        let start = self.column - 1;
        let all = self.source.chars().count();
        let from = match all > MOST_SHOWN {
            true => start.saturating_sub(MOST_BEFORE),
            false => 0,
        };
        let cut = |yes: bool| if yes { "..." } else { "" };
        let part: String = self.source.chars().skip(from).take(MOST_SHOWN).collect();
        let end = from + part.chars().count();
        let before = part.chars().take(start - from);
        let before = before.map(|c| if c == '\t' { '\t' } else { ' ' });
        let before: String = cut(from > 0).chars().map(|_| ' ').chain(before).collect();
        let width = match all > MOST_SHOWN {
            true => self.width.min(end.saturating_sub(start)).max(1),
            false => self.width,
        };
        let shown = format!("{}{part}{}", cut(from > 0), cut(end < all));
        (shown, before, width)
    }
}

/// The last character boundary at or before `at`.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// All problems in an experiment file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file, as the user named it.
    pub file: String,
    /// At least one.
    pub problems: Vec<Problem>,
}

impl Problems {
    /// Problems of a file with the name `file`, sorted by line.
    pub fn of(file: &str, mut problems: Vec<Problem>) -> Problems {
        problems.sort_by_key(|p| (p.line, p.column));
        Problems {
            file: file.into(),
            problems,
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, p) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            let number = p.line.to_string();
            let margin = " ".repeat(number.len());
            write!(f, "{}", p.message)?;
            write!(f, "\n{margin}--> {}:{}:{}", self.file, p.line, p.column)?;
            if !p.key.is_empty() {
                write!(f, " (key {})", p.key)?;
            }
            write!(f, "\n{margin} |")?;
            let (shown, before, width) = p.shown();
            write!(f, "\n{number} | {shown}")?;
            write!(f, "\n{margin} | {before}{}", "^".repeat(width))?;
            if let Some(hint) = &p.hint {
                write!(f, "\nhint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_only_what_is_around_the_problem_is_shown() {
        let text = format!("a = 1\n{}bad{}\n", "x".repeat(1000), "y".repeat(3_000_000));
        let problem = Problem::at(&text, 1006..1009, String::new(), "wrong".into(), None);
        let said = Problems::of("f", vec![problem]).to_string();
        assert!(said.len() < 700, "{}", said.len());
        let lines: Vec<&str> = said.lines().collect();
        let [shown, marked] = [lines[3], lines[4]];
        let at = marked.find("^^^").unwrap();
        assert_eq!(&shown[at..at + 3], "bad");
        assert!(shown.contains("| ...x") && shown.ends_with("y..."));
        let long = |n: usize| shortened("ä".repeat(n)).chars().count();
        assert_eq!((long(10), long(1000)), (10, 1000));
        assert!(long(1_000_000) < 1010);
        // A problem as wide as its line.
        let whole = Problem::at(&text, 6..3_000_000, String::new(), "wrong".into(), None);
        let wide = Problems::of("f", vec![whole]).to_string();
        assert!(wide.len() < 700, "{}", wide.len());
    }
}
