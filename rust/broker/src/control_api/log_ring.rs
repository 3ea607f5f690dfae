//! Rust's log lines for Python's `logging`: a bounded ring that the control thread drains
//! (docs/PLANES.md S1).
//!
//! Clients can cause lines, so lines are limited per target and second, and client bytes are only
//! written by [`escaped`]: no line feed, control character or escape sequence of a client reaches a
//! terminal or forges a line.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};
use std::mem;
use std::sync::Arc;

use pykafka_forks::Mutex;
use pykafka_log::Clock;

/// Maximum lines in the ring; the oldest are dropped first, and counted.
const LINES_MAX: usize = 2_048;
/// Maximum lines of one target in one second; the others are counted.
const LINES_PER_SECOND_MAX: u32 = 20;
/// Maximum characters of client text in a line.
const ESCAPED_CHARACTERS_MAX: usize = 200;
const SECOND_NS: u64 = 1_000_000_000;
const TARGET: &str = "broker.log";

/// Severity, with the numbers of Python's `logging`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// 10
    Debug = 10,
    /// 20
    Info = 20,
    /// 30
    Warning = 30,
    /// 40
    Error = 40,
}

/// A line for Python's `logging`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Wall clock.
    pub time_ms: i64,
    /// Severity.
    pub level: Level,
    /// The component, such as `broker.connection`.
    pub target: &'static str,
    /// A text without line breaks.
    pub text: String,
}

#[derive(Default)]
struct Window {
    second: u64,
    lines: u32,
    /// Since the last drain.
    suppressed: u32,
}

#[derive(Default)]
struct State {
    lines: VecDeque<LogLine>,
    windows: BTreeMap<&'static str, Window>,
    /// Lines that were dropped for later ones since the last drain.
    lost: u32,
}

/// A bounded buffer of the lines that were not drained yet.
pub struct LogRing {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl LogRing {
    /// An empty ring; `clock` provides the time of its lines.
    pub fn new(clock: Arc<dyn Clock>) -> LogRing {
        LogRing { clock, state: Mutex::default() }
    }

    /// Adds a line unless its target has reached the limit of this second; `text` is only called if
    /// the line is added.
    pub fn log(&self, level: Level, target: &'static str, text: impl FnOnce() -> String) {
        let second = self.clock.now_ns() / SECOND_NS;
        let mut state = self.state.lock();
        let window = state.windows.entry(target).or_default();
        if window.second != second {
            (window.second, window.lines) = (second, 0);
        }
        if window.lines >= LINES_PER_SECOND_MAX {
            window.suppressed += 1;
            return;
        }
        window.lines += 1;
        state.push(LogLine { time_ms: self.clock.now_ms(), level, target, text: text() });
    }

    /// Adds a line that clients cannot cause repeatedly; not limited.
    pub fn report(&self, level: Level, target: &'static str, text: String) {
        let line = LogLine { time_ms: self.clock.now_ms(), level, target, text };
        self.state.lock().push(line);
    }

    /// All lines since the last call, and the numbers of missing lines.
    pub fn drain(&self) -> Vec<LogLine> {
        let time_ms = self.clock.now_ms();
        let missing = |count: u32, target, what: &str| {
            let text = format!("{count} {what}");
            (count > 0).then_some(LogLine { time_ms, level: Level::Warning, target, text })
        };
        let mut state = self.state.lock();
        let lost = missing(mem::take(&mut state.lost), TARGET, "older lines were lost");
        let mut drained: Vec<_> = lost.into_iter().chain(state.lines.drain(..)).collect();
        drained.extend(state.windows.iter_mut().filter_map(|(target, window)| {
            missing(mem::take(&mut window.suppressed), *target, "more lines were suppressed")
        }));
        drained
    }
}

impl State {
    fn push(&mut self, line: LogLine) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.lost += 1;
        }
        self.lines.push_back(line);
    }
}

/// Formats client text: printable, quoted, of bounded length.
pub fn escaped(text: &str) -> impl fmt::Display + '_ {
    struct Escaped<'a>(&'a str);
    impl fmt::Display for Escaped<'_> {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_char('"')?;
            let mut characters = self.0.chars();
            for character in characters.by_ref().take(ESCAPED_CHARACTERS_MAX) {
                write!(formatter, "{}", character.escape_default())?;
            }
            let rest = characters.count();
            formatter.write_char('"')?;
            if rest > 0 { write!(formatter, " and {rest} more characters") } else { Ok(()) }
        }
    }
    Escaped(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pykafka_log::ManualClock;

    #[test]
    fn client_text_cannot_forge_lines_or_steer_a_terminal() {
        let shown = escaped("a\r\nERROR \u{1b}[31m\u{202e}b").to_string();
        assert_eq!(shown, r#""a\r\nERROR \u{1b}[31m\u{202e}b""#);
        let long = escaped(&"\u{7}".repeat(32 << 10)).to_string();
        assert!(long.len() < 2_000 && long.ends_with("and 32568 more characters"), "{long}");
    }

    #[test]
    fn a_flood_of_one_target_is_counted_instead_of_kept() {
        let clock = Arc::new(ManualClock::new(0));
        let ring = LogRing::new(clock.clone());
        for _ in 0..100 {
            ring.log(Level::Info, "broker.connection", || "closed".into());
        }
        ring.log(Level::Error, "broker.partition", || "failed".into());
        assert_eq!(ring.state.lock().lines.len(), LINES_PER_SECOND_MAX as usize + 1);
        assert_eq!(last_of(&ring), "80 more lines were suppressed");
        clock.advance_ms(1_000);
        ring.log(Level::Info, "broker.connection", || "closed".into());
        assert_eq!(last_of(&ring), "closed");
    }

    #[test]
    fn reports_are_not_rate_limited_and_lost_lines_are_counted() {
        let ring = LogRing::new(Arc::new(ManualClock::new(0)));
        for _ in 0..LINES_MAX + 3 {
            ring.report(Level::Warning, "broker.partition", "cut".into());
        }
        let drained = ring.drain();
        assert_eq!(drained.len(), 1 + LINES_MAX);
        assert_eq!(drained[0].text, "3 older lines were lost");
        assert_eq!(ring.drain(), []);
    }

    fn last_of(ring: &LogRing) -> String {
        ring.drain().pop().expect("there is a line").text
    }
}
