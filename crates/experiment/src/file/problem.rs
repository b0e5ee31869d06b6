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
            message,
            hint,
            source: text[line_start..line_end].trim_end().to_owned(),
        }
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
            write!(f, "\n{number} | {}", p.source)?;
            let before: String = p
                .source
                .chars()
                .take(p.column - 1)
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            write!(f, "\n{margin} | {before}{}", "^".repeat(p.width))?;
            if let Some(hint) = &p.hint {
                write!(f, "\nhint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
