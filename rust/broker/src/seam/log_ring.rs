//! Rust's log lines on their way to Python's `logging`: a bounded ring that the control thread drains (docs/SEAM.md S1).
//!
//! Clients cause lines, so lines are limited per target and second, and client bytes are written by [`escaped`] alone: no
//! line feed, control character or escape sequence of theirs reaches a terminal or forges a line.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::Arc;

use pykafka_forks::Mutex;
use pykafka_log::Clock;

/// Lines that wait; the oldest go first.
const LINES_MAX: usize = 2_048;
/// Lines of one target in one second; the rest is counted.
const LINES_PER_SECOND_MAX: u32 = 20;
/// Characters of client text that are shown.
const ESCAPED_CHARACTERS_MAX: usize = 200;
const SECOND_NS: u64 = 1_000_000_000;

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

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Wall clock.
    pub time_ms: i64,
    /// Severity.
    pub level: Level,
    /// Which part speaks: `broker.connection`.
    pub target: &'static str,
    /// Of one line.
    pub text: String,
}

#[derive(Default)]
struct Window {
    second: u64,
    lines: u32,
    suppressed: u32,
}

#[derive(Default)]
struct State {
    lines: VecDeque<LogLine>,
    windows: HashMap<&'static str, Window>,
}

/// The ring.
pub struct LogRing {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl LogRing {
    /// An empty ring whose lines carry the time of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> LogRing {
        LogRing { clock, state: Mutex::default() }
    }

    /// Adds a line unless its target has had its share of this second; `text` is only made if it is wanted.
    pub fn log(&self, level: Level, target: &'static str, text: impl FnOnce() -> String) {
        let second = self.clock.now_ns() / SECOND_NS;
        let mut state = self.state.lock();
        let window = state.windows.entry(target).or_default();
        let mut suppressed = 0;
        if window.second != second {
            suppressed = window.suppressed;
            *window = Window { second, lines: 0, suppressed: 0 };
        }
        if window.lines >= LINES_PER_SECOND_MAX {
            window.suppressed += 1;
            return;
        }
        window.lines += 1;
        let time_ms = self.clock.now_ms();
        if suppressed > 0 {
            let text = format!("{suppressed} more lines were suppressed");
            push(&mut state.lines, LogLine { time_ms, level: Level::Warning, target, text });
        }
        push(&mut state.lines, LogLine { time_ms, level, target, text: text() });
    }

    /// All lines since the last call.
    pub fn drain(&self) -> Vec<LogLine> {
        self.state.lock().lines.drain(..).collect()
    }
}

fn push(lines: &mut VecDeque<LogLine>, line: LogLine) {
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// Shows text that a client sent: printable, quoted, of bounded length.
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
    fn a_flood_of_one_target_is_counted_not_kept() {
        let clock = Arc::new(ManualClock::new(0));
        let ring = LogRing::new(clock.clone());
        for _ in 0..100 {
            ring.log(Level::Info, "broker.connection", || "closed".into());
        }
        ring.log(Level::Error, "broker.partition", || "failed".into());
        assert_eq!(ring.drain().len(), LINES_PER_SECOND_MAX as usize + 1);
        clock.advance_ms(1_000);
        ring.log(Level::Info, "broker.connection", || "closed".into());
        let texts: Vec<String> = ring.drain().into_iter().map(|line| line.text).collect();
        assert_eq!(texts, ["80 more lines were suppressed", "closed"]);
    }
}
