//! A small SVG writer: elements open and close in order, every text is escaped, numbers are short.

use std::fmt::Write as _;

/// An SVG (or HTML) fragment under construction.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    out: String,
    open: Vec<&'static str>,
}

/// A start tag under construction.
#[must_use = "a start tag is written by `open`, `text` or `empty`"]
pub(crate) struct Tag<'a> {
    svg: &'a mut Svg,
    name: &'static str,
}

impl Svg {
    /// Begins an element.
    pub(crate) fn tag(&mut self, name: &'static str) -> Tag<'_> {
        self.out.push('<');
        self.out.push_str(name);
        Tag { svg: self, name }
    }

    /// Closes the element opened last; without one it does nothing.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = write!(self.out, "</{name}>");
        }
    }

    /// Adds text inside the element opened last.
    pub(crate) fn words(&mut self, text: &str) {
        escape_into(&mut self.out, text);
    }

    /// Adds markup without escaping.
    pub(crate) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// The finished text; elements still open are closed.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }
}

impl Tag<'_> {
    /// A text attribute.
    pub(crate) fn attr(self, name: &str, value: &str) -> Self {
        let _ = write!(self.svg.out, " {name}=\"");
        escape_into(&mut self.svg.out, value);
        self.svg.out.push('"');
        self
    }

    /// A number.
    pub(crate) fn num(self, name: &str, value: f64) -> Self {
        let _ = write!(self.svg.out, " {name}=\"");
        push_num(&mut self.svg.out, value);
        self.svg.out.push('"');
        self
    }

    /// Writes the start tag; [`Svg::close`] ends the element.
    pub(crate) fn open(self) {
        self.svg.out.push('>');
        self.svg.open.push(self.name);
    }

    /// Writes the element with text inside.
    pub(crate) fn text(self, text: &str) {
        self.svg.out.push('>');
        escape_into(&mut self.svg.out, text);
        let _ = write!(self.svg.out, "</{}>", self.name);
    }

    /// Writes the element with nothing inside.
    pub(crate) fn empty(self) {
        self.svg.out.push_str("/>");
    }
}

/// Appends `text`, escaped for use between tags and inside double quotes, in HTML and XML.
fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(printable(c)),
        }
    }
}

/// Replaces characters that must not appear. XML 1.0 section 2.2 forbids most control characters and U+FFFE/U+FFFF. The
/// explicit bidirectional controls (Unicode UAX #9) could make a name rearrange the text around it.
pub(crate) fn printable(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => c,
        '\u{0}'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fffe}'
        | '\u{ffff}' => '\u{fffd}',
        c => c,
    }
}

/// Appends a coordinate with at most two decimals and no trailing zeros; a non-finite one becomes 0.
pub(crate) fn push_num(out: &mut String, value: f64) {
    let value = if value.is_finite() {
        value.clamp(-1e7, 1e7)
    } else {
        0.0
    };
    let hundredths = (value * 100.0).round() as i64;
    if hundredths < 0 {
        out.push('-');
    }
    let h = hundredths.unsigned_abs();
    let _ = write!(out, "{}", h / 100);
    match h % 100 {
        0 => {}
        d if d % 10 == 0 => {
            let _ = write!(out, ".{}", d / 10);
        }
        d => {
            let _ = write!(out, ".{d:02}");
        }
    }
}

/// The data of a `path`: absolute commands only, which the page's script reads back. Consecutive level pieces are
/// merged, so that a quiet hour is one command.
#[derive(Debug, Default)]
pub(crate) struct PathData {
    out: String,
    /// Pending horizontal line.
    across: Option<f64>,
    /// The current y coordinate as written.
    y: String,
}

impl PathData {
    /// Starts a new piece.
    pub(crate) fn move_to(&mut self, x: f64, y: f64) {
        self.pair('M', x, y);
    }
    /// A straight line.
    pub(crate) fn line_to(&mut self, x: f64, y: f64) {
        self.pair('L', x, y);
    }
    /// A horizontal line.
    pub(crate) fn across(&mut self, x: f64) {
        self.across = Some(x);
    }
    /// A vertical line.
    pub(crate) fn upright(&mut self, y: f64) {
        let text = number(y);
        if text != self.y {
            self.flush();
            self.out.push('V');
            self.out.push_str(&text);
            self.y = text;
        }
    }
    /// Closes the piece.
    pub(crate) fn close(&mut self) {
        self.flush();
        self.out.push('Z');
    }
    /// A dot: a line of zero length, which a round cap makes visible.
    pub(crate) fn dot(&mut self, x: f64, y: f64) {
        self.pair('M', x, y);
        self.out.push_str("h0");
    }
    /// The value of the `d` attribute; empty if nothing was drawn.
    pub(crate) fn finish(mut self) -> String {
        self.flush();
        self.out
    }

    fn flush(&mut self) {
        if let Some(x) = self.across.take() {
            self.out.push('H');
            push_num(&mut self.out, x);
        }
    }

    fn pair(&mut self, command: char, x: f64, y: f64) {
        self.flush();
        self.out.push(command);
        push_num(&mut self.out, x);
        self.out.push(' ');
        self.y = number(y);
        self.out.push_str(&self.y);
    }
}

/// A coordinate as text.
pub(crate) fn number(value: f64) -> String {
    let mut out = String::new();
    push_num(&mut out, value);
    out
}

/// Approximate width of a text at `size` pixels, for layouts without font metrics. The classes follow the advance widths
/// of DejaVu Sans, the widest face of the list in the style: in another a text is up to a tenth narrower.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '\'' => 0.29,
            ' ' | '.' | ',' | ':' | ';' | '|' | '-' | '/' | '\u{a0}' => 0.34,
            't' | 'f' | 'r' | '(' | ')' | '[' | ']' | '!' => 0.4,
            'w' | '×' | '=' | '+' | '<' | '>' | '≥' | '≤' => 0.83,
            'm' | 'M' | 'W' | '%' | '@' | '…' => 0.98,
            'A'..='Z' => 0.72,
            c if c < '\u{2e80}' => 0.63,
            _ => 1.0,
        })
        .sum::<f64>()
        * size
}

/// `text` shortened to at most `width` pixels at `size`, with an ellipsis if it was cut.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if text_width(&out, size) + size > width {
            break;
        }
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element_or_attribute() {
        let mut svg = Svg::default();
        svg.tag("g").attr("class", "a\" onload=\"x").open();
        svg.tag("text")
            .text("</text><script>alert('x')</script>&\u{0}\u{202e}");
        assert_eq!(
            svg.finish(),
            "<g class=\"a&quot; onload=&quot;x\"><text>&lt;/text&gt;&lt;script&gt;\
             alert(&#39;x&#39;)&lt;/script&gt;&amp;\u{fffd}\u{fffd}</text></g>"
        );
    }

    #[test]
    fn numbers_are_short_and_always_numbers() {
        let show = |v| {
            let mut s = String::new();
            push_num(&mut s, v);
            s
        };
        assert_eq!(show(1.0), "1");
        assert_eq!(show(-0.001), "0");
        assert_eq!(show(-0.25), "-0.25");
        assert_eq!(show(12.3), "12.3");
        assert_eq!(show(0.05), "0.05");
        assert_eq!(show(f64::NAN), "0");
        assert_eq!(show(f64::INFINITY), "0");
        assert_eq!(show(1e300), "10000000");
    }

    #[test]
    fn a_long_name_is_cut_to_its_room() {
        let name = "x".repeat(500);
        assert!(text_width(&fit(&name, 12.0, 120.0), 12.0) <= 120.0 + 12.0);
        assert_eq!(fit("cbr", 12.0, 120.0), "cbr");
    }
}
