//! Pattern matching of Lua 5.1: `string.find`, `match`, `gmatch` and `gsub`.
//!
//! A port of `lstrlib.c` with two bounds that the C code lacks. Its recursion has a depth limit, as in
//! Lua 5.2 and later. Its loops call `check` once per [`CHECK_INTERVAL`] steps, which stops a match
//! when the script is killed or out of time.
//!
//! Patterns are C strings: the first NUL ends them.

use std::ops::Range;

/// Nested calls of the matcher, as `MAXCCALLS` of Lua 5.2 and later.
const DEPTH_MAX: usize = 200;
/// Captures of one pattern, as `LUA_MAXCAPTURES`.
const CAPTURES_MAX: usize = 32;
/// Bytes that are compared between two calls of `check`.
const CHECK_INTERVAL: usize = 1 << 16;
const ESCAPE: u8 = b'%';

/// Reason why a match fails with an error.
#[derive(Debug)]
pub enum PatternError {
    /// The pattern is malformed or too complex.
    Pattern(&'static str),
    /// The check ended the match.
    Interrupted(Box<mlua::Error>),
}

type Result<T> = std::result::Result<T, PatternError>;

/// Captured text, or a captured position counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Captured {
    /// Range in the subject.
    Text(Range<usize>),
    /// Position in the subject.
    Position(usize),
}

#[derive(Clone, Copy)]
enum CaptureState {
    Open,
    Position,
    Closed(usize),
}

#[derive(Clone, Copy)]
struct Capture {
    start: usize,
    state: CaptureState,
}

/// Matches one pattern against one subject.
pub struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    depth_left: usize,
    steps_left: usize,
    check: &'a mut dyn FnMut() -> mlua::Result<()>,
}

/// Returns the pattern up to its first NUL.
pub fn until_nul(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| *byte == 0);
    pattern.get(..end.unwrap_or(pattern.len())).unwrap_or_default()
}

/// Splits the anchor `^` off a pattern.
pub fn split_anchor(pattern: &[u8]) -> (bool, &[u8]) {
    match pattern.strip_prefix(b"^") {
        Some(rest) => (true, rest),
        None => (false, pattern),
    }
}

/// Whether a pattern has characters with a meaning of their own.
pub fn has_specials(pattern: &[u8]) -> bool {
    pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte))
}

impl<'a> Matcher<'a> {
    /// Creates a matcher. `pattern` has no anchor and no NUL.
    pub fn new(
        subject: &'a [u8],
        pattern: &'a [u8],
        check: &'a mut dyn FnMut() -> mlua::Result<()>,
    ) -> Matcher<'a> {
        let none = Capture { start: 0, state: CaptureState::Open };
        Matcher {
            subject,
            pattern,
            captures: [none; CAPTURES_MAX],
            level: 0,
            depth_left: DEPTH_MAX,
            steps_left: CHECK_INTERVAL,
            check,
        }
    }

    /// Matches at one place. Returns the end of the match.
    ///
    /// # Errors
    /// When the pattern is malformed or the check fails.
    pub fn match_at(&mut self, start: usize) -> Result<Option<usize>> {
        self.level = 0;
        self.match_here(start, 0)
    }

    /// Finds the first match at or behind `start`.
    ///
    /// # Errors
    /// As [`Matcher::match_at`].
    pub fn find(&mut self, start: usize, is_anchored: bool) -> Result<Option<Range<usize>>> {
        for at in start..=self.subject.len() {
            if let Some(end) = self.match_at(at)? {
                return Ok(Some(at..end));
            }
            if is_anchored {
                break;
            }
        }
        Ok(None)
    }

    /// Captures of the last match.
    pub fn capture_count(&self) -> usize {
        self.level
    }

    /// Returns a capture, counted from 0. The first of a pattern without captures is the whole match.
    ///
    /// # Errors
    /// When there is no such capture, or it has no end.
    pub fn capture(&self, at: usize, whole: Range<usize>) -> Result<Captured> {
        if self.level <= at {
            return match at {
                0 => Ok(Captured::Text(whole)),
                _ => Err(PatternError::Pattern("invalid capture index")),
            };
        }
        let capture = self.captures[at];
        match capture.state {
            CaptureState::Open => Err(PatternError::Pattern("unfinished capture")),
            CaptureState::Position => Ok(Captured::Position(capture.start + 1)),
            CaptureState::Closed(end) => Ok(Captured::Text(capture.start..end)),
        }
    }

    /// Counts steps; calls the check when the interval is used up.
    ///
    /// # Errors
    /// When the check fails.
    pub fn count(&mut self, steps: usize) -> Result<()> {
        match self.steps_left.checked_sub(steps) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = CHECK_INTERVAL;
                (self.check)().map_err(|error| PatternError::Interrupted(Box::new(error)))
            }
        }
    }

    /// Byte of the pattern; 0 at its end.
    fn pattern_byte(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    /// Byte of the subject; 0 at its end.
    fn subject_byte(&self, at: usize) -> u8 {
        self.subject.get(at).copied().unwrap_or(0)
    }

    fn match_here(&mut self, at: usize, item: usize) -> Result<Option<usize>> {
        let left = self.depth_left.checked_sub(1);
        self.depth_left = left.ok_or(PatternError::Pattern("pattern too complex"))?;
        let end = self.match_items(at, item);
        self.depth_left += 1;
        end
    }

    fn match_items(&mut self, mut at: usize, mut item: usize) -> Result<Option<usize>> {
        loop {
            self.count(1)?;
            let next = self.pattern_byte(item + 1);
            match self.pattern_byte(item) {
                0 => return Ok(Some(at)),
                b'(' if next == b')' => {
                    return self.open_capture(at, item + 2, CaptureState::Position);
                }
                b'(' => return self.open_capture(at, item + 1, CaptureState::Open),
                b')' => return self.close_capture(at, item + 1),
                b'$' if next == 0 => return Ok((at == self.subject.len()).then_some(at)),
                ESCAPE if matches!(next, b'b' | b'f' | b'0'..=b'9') => {
                    let Some((next_at, next_item)) = self.match_escape(at, item + 1)? else {
                        return Ok(None);
                    };
                    (at, item) = (next_at, next_item);
                    continue;
                }
                _ => {}
            }
            let end = self.class_end(item)?;
            self.count(end - item)?;
            let is_match = self.is_single_match(at, item, end);
            match self.pattern_byte(end) {
                b'?' => {
                    if is_match && let Some(end) = self.match_here(at + 1, end + 1)? {
                        return Ok(Some(end));
                    }
                    item = end + 1;
                }
                b'*' => return self.match_longest(at, item, end),
                b'+' if is_match => return self.match_longest(at + 1, item, end),
                b'-' => return self.match_shortest(at, item, end),
                b'+' => return Ok(None),
                _ if !is_match => return Ok(None),
                _ => (at, item) = (at + 1, end),
            }
        }
    }

    /// Matches `%b`, `%f` or a back reference, whose letter is at `item`. Returns the places behind.
    fn match_escape(&mut self, at: usize, item: usize) -> Result<Option<(usize, usize)>> {
        match self.pattern_byte(item) {
            b'b' => Ok(self.match_balance(at, item + 1)?.map(|end| (end, item + 3))),
            b'f' => {
                if self.pattern_byte(item + 1) != b'[' {
                    return Err(PatternError::Pattern("missing '[' after '%f' in pattern"));
                }
                let end = self.class_end(item + 1)?;
                self.count(end - item)?;
                let previous = at.checked_sub(1).map_or(0, |before| self.subject_byte(before));
                let is_frontier = !self.is_in_set(previous, item + 1, end - 1)
                    && self.is_in_set(self.subject_byte(at), item + 1, end - 1);
                Ok(is_frontier.then_some((at, end)))
            }
            digit => Ok(self.match_back_reference(at, digit)?.map(|end| (end, item + 1))),
        }
    }

    fn match_balance(&mut self, at: usize, item: usize) -> Result<Option<usize>> {
        let (open, close) = (self.pattern_byte(item), self.pattern_byte(item + 1));
        if open == 0 || close == 0 {
            return Err(PatternError::Pattern("unbalanced pattern"));
        }
        let rest = self.subject.get(at..).unwrap_or_default();
        let Some((first, rest)) = rest.split_first() else { return Ok(None) };
        if *first != open {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (offset, byte) in rest.iter().enumerate() {
            if *byte == close {
                depth -= 1;
                if depth == 0 {
                    self.count(offset)?;
                    return Ok(Some(at + 1 + offset + 1));
                }
            } else if *byte == open {
                depth += 1;
            }
        }
        self.count(rest.len())?;
        Ok(None)
    }

    fn match_back_reference(&mut self, at: usize, digit: u8) -> Result<Option<usize>> {
        let capture = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = capture.filter(|capture| *capture < self.level);
        let capture = capture.map(|capture| self.captures[capture]);
        let capture = capture.ok_or(PatternError::Pattern("invalid capture index"))?;
        let end = match capture.state {
            CaptureState::Open => return Err(PatternError::Pattern("invalid capture index")),
            CaptureState::Position => return Ok(None),
            CaptureState::Closed(end) => end,
        };
        self.count(end - capture.start)?;
        let text = self.subject.get(capture.start..end).unwrap_or_default();
        let rest = self.subject.get(at..).unwrap_or_default();
        Ok(rest.starts_with(text).then_some(at + text.len()))
    }

    fn match_longest(&mut self, at: usize, item: usize, end: usize) -> Result<Option<usize>> {
        let mut repeats = 0;
        while self.is_single_match(at + repeats, item, end) {
            self.count(end - item)?;
            repeats += 1;
        }
        loop {
            if let Some(end) = self.match_here(at + repeats, end + 1)? {
                return Ok(Some(end));
            }
            if repeats == 0 {
                return Ok(None);
            }
            repeats -= 1;
        }
    }

    fn match_shortest(&mut self, mut at: usize, item: usize, end: usize) -> Result<Option<usize>> {
        loop {
            if let Some(end) = self.match_here(at, end + 1)? {
                return Ok(Some(end));
            }
            if !self.is_single_match(at, item, end) {
                return Ok(None);
            }
            self.count(end - item)?;
            at += 1;
        }
    }

    fn open_capture(
        &mut self,
        at: usize,
        item: usize,
        state: CaptureState,
    ) -> Result<Option<usize>> {
        let Some(capture) = self.captures.get_mut(self.level) else {
            return Err(PatternError::Pattern("too many captures"));
        };
        *capture = Capture { start: at, state };
        self.level += 1;
        let end = self.match_here(at, item)?;
        if end.is_none() {
            self.level -= 1;
        }
        Ok(end)
    }

    fn close_capture(&mut self, at: usize, item: usize) -> Result<Option<usize>> {
        let is_open = |capture: &Capture| matches!(capture.state, CaptureState::Open);
        let open = self.captures.iter().take(self.level).rposition(is_open);
        let open = open.ok_or(PatternError::Pattern("invalid pattern capture"))?;
        self.captures[open].state = CaptureState::Closed(at);
        let end = self.match_here(at, item)?;
        if end.is_none() {
            self.captures[open].state = CaptureState::Open;
        }
        Ok(end)
    }

    /// End of the character or class that begins at `item`.
    fn class_end(&self, item: usize) -> Result<usize> {
        match self.pattern_byte(item) {
            ESCAPE if self.pattern_byte(item + 1) == 0 => {
                Err(PatternError::Pattern("malformed pattern (ends with '%')"))
            }
            ESCAPE => Ok(item + 2),
            b'[' => self.set_end(item + 1),
            _ => Ok(item + 1),
        }
    }

    fn set_end(&self, mut at: usize) -> Result<usize> {
        if self.pattern_byte(at) == b'^' {
            at += 1;
        }
        loop {
            // The first character is part of the set, even if it is `]`.
            match self.pattern_byte(at) {
                0 => return Err(PatternError::Pattern("malformed pattern (missing ']')")),
                ESCAPE if self.pattern_byte(at + 1) != 0 => at += 2,
                _ => at += 1,
            }
            if self.pattern_byte(at) == b']' {
                return Ok(at + 1);
            }
        }
    }

    fn is_single_match(&self, at: usize, item: usize, end: usize) -> bool {
        let Some(byte) = self.subject.get(at).copied() else { return false };
        match self.pattern_byte(item) {
            b'.' => true,
            ESCAPE => is_in_class(byte, self.pattern_byte(item + 1)),
            b'[' => self.is_in_set(byte, item, end - 1),
            other => other == byte,
        }
    }

    /// Whether a set has a byte. `start` is its `[`, `end` its `]`.
    fn is_in_set(&self, byte: u8, start: usize, end: usize) -> bool {
        let is_negated = self.pattern_byte(start + 1) == b'^';
        let mut at = start + 1 + usize::from(is_negated);
        while at < end {
            let here = self.pattern_byte(at);
            if here == ESCAPE {
                at += 1;
                if is_in_class(byte, self.pattern_byte(at)) {
                    return !is_negated;
                }
            } else if self.pattern_byte(at + 1) == b'-' && at + 2 < end {
                at += 2;
                if (here..=self.pattern_byte(at)).contains(&byte) {
                    return !is_negated;
                }
            } else if here == byte {
                return !is_negated;
            }
            at += 1;
        }
        is_negated
    }
}

/// Whether a class such as `%a` has a byte. An upper-case letter negates the class.
fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 11,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in == class.is_ascii_lowercase()
}
