//! The settings of one log, under Kafka's topic-level names.
//!
//! The control plane validates names and ranges for users. An unknown name or an unreadable value
//! is an error here too, because a log that guesses its retention deletes data.

use pykafka_record::{Compression, Limits};
use thiserror::Error;

/// Which failures an acknowledged append survives. It only sets the defaults of `flush.messages`
/// and `flush.ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Synced to disk before the acknowledgement (`flush.messages=1`).
    Fsync,
    /// In the page cache at the acknowledgement; synced every `flush.ms` = 100.
    Interval,
    /// In the page cache; the operating system decides when to write it to disk.
    Os,
    /// Lost when the process ends.
    Memory,
}

impl Durability {
    /// The mode with this name on the command line and in Python.
    pub fn from_name(name: &str) -> Option<Durability> {
        match name {
            "fsync" => Some(Durability::Fsync),
            "interval" => Some(Durability::Interval),
            "os" => Some(Durability::Os),
            "memory" => Some(Durability::Memory),
            _ => None,
        }
    }

    /// The name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Fsync => "fsync",
            Durability::Interval => "interval",
            Durability::Os => "os",
            Durability::Memory => "memory",
        }
    }

    /// The default `(flush.messages, flush.ms)` of this mode.
    pub fn flush_defaults(self) -> (i64, i64) {
        match self {
            Durability::Fsync => (1, i64::MAX),
            Durability::Interval => (i64::MAX, 100),
            Durability::Os | Durability::Memory => (i64::MAX, i64::MAX),
        }
    }
}

/// `cleanup.policy`. Both may be set; with neither, nothing is removed by policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CleanupPolicy {
    /// Segments are deleted by age and size.
    pub delete: bool,
    /// Records are deleted if a later record has the same key.
    pub compact: bool,
}

/// `compression.type`: how the log stores batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompressionType {
    /// As the producer compressed them.
    Producer,
    /// Always in this codec; [`Compression::None`] is Kafka's `uncompressed`.
    Codec(Compression),
}

/// `message.timestamp.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageTimestampType {
    /// Keeps the producer's timestamps.
    CreateTime,
    /// The leader sets the timestamp of each batch when it appends it.
    LogAppendTime,
}

/// A setting that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// No topic-level setting of Kafka 4.2 has this name.
    #[error("unknown topic setting {name:?}")]
    Unknown {
        /// The unknown name.
        name: String,
    },
    /// The value does not parse or is out of range.
    #[error("invalid value {value:?} for {name}: {reason}")]
    Invalid {
        /// The setting.
        name: String,
        /// Its value as given.
        value: String,
        /// The expected kind of value, or how the value is wrong.
        reason: &'static str,
    },
}

/// The settings of one log. Sizes are bytes, times are milliseconds; −1 means "no limit" where
/// Kafka defines it so.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes` (or `internal.segment.bytes`): a segment is rolled before it grows beyond
    /// this.
    pub segment_bytes: i32,
    /// `segment.ms`: a segment is rolled when its first record is older than this.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to this much is subtracted from `segment.ms`, drawn once per
    /// segment.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: a segment is rolled before an index grows beyond this.
    pub segment_index_bytes: i32,
    /// `index.interval.bytes`: at most one index entry in this many bytes of batches.
    pub index_interval_bytes: i32,
    /// `max.message.bytes`: the largest batch a client may append.
    pub max_message_bytes: i32,
    /// `max.decompressed.message.bytes`: the largest record that a compressed batch may have.
    pub max_decompressed_message_bytes: i32,
    /// `retention.bytes`: −1 is no limit.
    pub retention_bytes: i64,
    /// `retention.ms`: −1 is no limit.
    pub retention_ms: i64,
    /// `local.retention.bytes`: stored; only tiered storage uses it.
    pub local_retention_bytes: i64,
    /// `local.retention.ms`: stored; only tiered storage uses it.
    pub local_retention_ms: i64,
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `compression.type`.
    pub compression_type: CompressionType,
    /// `compression.gzip.level`: −1 is the codec's default.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `message.timestamp.type`.
    pub message_timestamp_type: MessageTimestampType,
    /// `message.timestamp.before.max.ms`: how far in the past a producer's timestamp may be.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far in the future it may be.
    pub message_timestamp_after_max_ms: i64,
    /// `flush.messages`: sync when this many records are unsynced.
    pub flush_messages: i64,
    /// `flush.ms`: sync when the oldest unsynced record is this old.
    pub flush_ms: i64,
    /// `file.delete.delay.ms`: a removed segment stays as `.deleted` for this long.
    pub file_delete_delay_ms: i64,
    /// `min.insync.replicas`.
    pub min_insync_replicas: i32,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election_enable: bool,
    /// `delete.retention.ms`: how long a compacted log keeps tombstones.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// `preallocate`: accepted without effect; space is always reserved ahead in steps.
    pub preallocate: bool,
}

impl Default for LogConfig {
    /// Kafka 4.2's defaults, which are those of [`Durability::Os`].
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * DAY_MS,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            max_message_bytes: 1_048_588,
            max_decompressed_message_bytes: i32::MAX - 8,
            retention_bytes: -1,
            retention_ms: 7 * DAY_MS,
            local_retention_bytes: -2,
            local_retention_ms: -2,
            cleanup_policy: CleanupPolicy { delete: true, compact: false },
            compression_type: CompressionType::Producer,
            compression_gzip_level: -1,
            compression_lz4_level: 9,
            compression_zstd_level: 3,
            message_timestamp_type: MessageTimestampType::CreateTime,
            message_timestamp_before_max_ms: i64::MAX,
            message_timestamp_after_max_ms: HOUR_MS,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            file_delete_delay_ms: 60_000,
            min_insync_replicas: 1,
            unclean_leader_election_enable: false,
            delete_retention_ms: DAY_MS,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            min_cleanable_dirty_ratio: 0.5,
            preallocate: false,
        }
    }
}

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Topic-level settings of Kafka 4.2 that do not affect a log on one node's disk. They are accepted
/// here; other components store and use them.
const SETTINGS_ELSEWHERE: [&str; 5] = [
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
];

impl LogConfig {
    /// `limits`, with the record size limit of these settings.
    pub(crate) fn limits(&self, limits: Limits) -> Limits {
        Limits { record_bytes_max: self.max_decompressed_message_bytes as usize, ..limits }
    }

    /// Kafka's defaults with the flush defaults of `durability`.
    pub fn for_durability(durability: Durability) -> LogConfig {
        let (flush_messages, flush_ms) = durability.flush_defaults();
        LogConfig { flush_messages, flush_ms, ..LogConfig::default() }
    }

    /// Does the same as [`LogConfig::resolve`], for callers that can reject the overrides.
    ///
    /// # Errors
    /// The first name that Kafka does not have, or value that does not parse or is out of range.
    pub fn from_settings<'a>(
        base: &LogConfig,
        overrides: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<LogConfig, ConfigError> {
        let (config, refused) = LogConfig::resolve(base, overrides);
        refused.into_iter().next().map_or(Ok(config), Err)
    }

    /// `base` with topic-level `overrides` applied in order: the last value of a name wins, and
    /// `internal.segment.bytes` wins over `segment.bytes` in either order. An invalid override
    /// leaves the value of `base` and is returned as an error, because committed settings must not
    /// prevent a log from being opened.
    pub fn resolve<'a>(
        base: &LogConfig,
        overrides: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> (LogConfig, Vec<ConfigError>) {
        const WINS: &str = "internal.segment.bytes";
        let (mut config, mut refused) = (base.clone(), Vec::new());
        let mut wins = None;
        for (name, value) in overrides {
            if name == WINS {
                wins = Some((name, value));
            } else {
                refused.extend(config.set(name, value).err());
            }
        }
        refused.extend(wins.and_then(|(name, value)| config.set(name, value).err()));
        (config, refused)
    }

    /// True if every append is synced before it is acknowledged. Such a log also does not write
    /// through mapped windows.
    pub fn syncs_every_append(&self) -> bool {
        self.flush_messages == 1
    }

    /// How old the first record of an active segment may become. In a compacted log the segment
    /// must be sealed within `max.compaction.lag.ms`.
    pub fn segment_ms_max(&self) -> i64 {
        if self.cleanup_policy.compact {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }

    /// The level for recompressing to `codec`; `None` is the codec's default.
    pub fn compression_level(&self, codec: Compression) -> Option<i32> {
        match codec {
            Compression::Gzip => Some(self.compression_gzip_level).filter(|level| *level != -1),
            Compression::Lz4 => Some(self.compression_lz4_level),
            Compression::Zstd => Some(self.compression_zstd_level),
            Compression::None | Compression::Snappy => None,
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        let setting = Setting { name, value };
        match name {
            "segment.bytes" => self.segment_bytes = setting.int(1)?,
            // Kafka accepts any number; a log without space for one batch could not append
            // anything.
            "internal.segment.bytes" => self.segment_bytes = setting.int(i32::MIN)?.max(1),
            "segment.ms" => self.segment_ms = setting.long(1)?,
            "segment.jitter.ms" => self.segment_jitter_ms = setting.long(0)?,
            "segment.index.bytes" => self.segment_index_bytes = setting.int(4)?,
            "index.interval.bytes" => self.index_interval_bytes = setting.int(0)?,
            "max.message.bytes" => self.max_message_bytes = setting.int(0)?,
            "max.decompressed.message.bytes" => {
                self.max_decompressed_message_bytes = setting.int(1)?;
            }
            "retention.bytes" => self.retention_bytes = setting.long(i64::MIN)?,
            "retention.ms" => self.retention_ms = setting.long(-1)?,
            "local.retention.bytes" => self.local_retention_bytes = setting.long(-2)?,
            "local.retention.ms" => self.local_retention_ms = setting.long(-2)?,
            "cleanup.policy" => self.cleanup_policy = setting.cleanup_policy()?,
            "compression.type" => self.compression_type = setting.compression_type()?,
            "compression.gzip.level" => self.compression_gzip_level = setting.int(-1)?,
            "compression.lz4.level" => self.compression_lz4_level = setting.int(1)?,
            "compression.zstd.level" => self.compression_zstd_level = setting.int(i32::MIN)?,
            "message.timestamp.type" => self.message_timestamp_type = setting.timestamp_type()?,
            "message.timestamp.before.max.ms" => {
                self.message_timestamp_before_max_ms = setting.long(0)?;
            }
            "message.timestamp.after.max.ms" => {
                self.message_timestamp_after_max_ms = setting.long(0)?;
            }
            "flush.messages" => self.flush_messages = setting.long(1)?,
            "flush.ms" => self.flush_ms = setting.long(0)?,
            "file.delete.delay.ms" => self.file_delete_delay_ms = setting.long(0)?,
            "min.insync.replicas" => self.min_insync_replicas = setting.int(1)?,
            "unclean.leader.election.enable" => {
                self.unclean_leader_election_enable = setting.boolean()?;
            }
            "delete.retention.ms" => self.delete_retention_ms = setting.long(0)?,
            "min.compaction.lag.ms" => self.min_compaction_lag_ms = setting.long(0)?,
            "max.compaction.lag.ms" => self.max_compaction_lag_ms = setting.long(1)?,
            "min.cleanable.dirty.ratio" => self.min_cleanable_dirty_ratio = setting.ratio()?,
            "preallocate" => self.preallocate = setting.boolean()?,
            _ if SETTINGS_ELSEWHERE.contains(&name) => {}
            _ => return Err(ConfigError::Unknown { name: name.to_owned() }),
        }
        Ok(())
    }
}

/// An override that is being parsed.
struct Setting<'a> {
    name: &'a str,
    value: &'a str,
}

impl Setting<'_> {
    fn invalid(&self, reason: &'static str) -> ConfigError {
        ConfigError::Invalid { name: self.name.to_owned(), value: self.value.to_owned(), reason }
    }

    fn int(&self, min: i32) -> Result<i32, ConfigError> {
        let number: i32 = self.parse("a 32-bit integer")?;
        if number < min { Err(self.invalid("too small")) } else { Ok(number) }
    }

    fn long(&self, min: i64) -> Result<i64, ConfigError> {
        let number: i64 = self.parse("a 64-bit integer")?;
        if number < min { Err(self.invalid("too small")) } else { Ok(number) }
    }

    fn ratio(&self) -> Result<f64, ConfigError> {
        let ratio: f64 = self.parse("a number from 0 to 1")?;
        if (0.0..=1.0).contains(&ratio) {
            Ok(ratio)
        } else {
            Err(self.invalid("a number from 0 to 1"))
        }
    }

    fn parse<T: std::str::FromStr>(&self, expected: &'static str) -> Result<T, ConfigError> {
        self.value.trim().parse().map_err(|_| self.invalid(expected))
    }

    fn boolean(&self) -> Result<bool, ConfigError> {
        match self.value.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.invalid("true or false")),
        }
    }

    fn cleanup_policy(&self) -> Result<CleanupPolicy, ConfigError> {
        let mut policy = CleanupPolicy { delete: false, compact: false };
        for word in self.value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "delete" => policy.delete = true,
                "compact" => policy.compact = true,
                _ => return Err(self.invalid("a list of delete and compact")),
            }
        }
        Ok(policy)
    }

    fn compression_type(&self) -> Result<CompressionType, ConfigError> {
        match self.value.trim().to_ascii_lowercase().as_str() {
            "producer" => Ok(CompressionType::Producer),
            "uncompressed" => Ok(CompressionType::Codec(Compression::None)),
            "gzip" => Ok(CompressionType::Codec(Compression::Gzip)),
            "snappy" => Ok(CompressionType::Codec(Compression::Snappy)),
            "lz4" => Ok(CompressionType::Codec(Compression::Lz4)),
            "zstd" => Ok(CompressionType::Codec(Compression::Zstd)),
            _ => Err(self.invalid("uncompressed, zstd, lz4, snappy, gzip or producer")),
        }
    }

    fn timestamp_type(&self) -> Result<MessageTimestampType, ConfigError> {
        match self.value.trim() {
            "CreateTime" => Ok(MessageTimestampType::CreateTime),
            "LogAppendTime" => Ok(MessageTimestampType::LogAppendTime),
            _ => Err(self.invalid("CreateTime or LogAppendTime")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(overrides: &[(&str, &str)]) -> Result<LogConfig, ConfigError> {
        LogConfig::from_settings(&LogConfig::default(), overrides.iter().copied())
    }

    #[test]
    fn later_override_of_a_name_wins_and_the_internal_segment_size_in_either_order() {
        let mut overrides = [("segment.bytes", "2097152"), ("internal.segment.bytes", "16384")];
        assert_eq!(parsed(&overrides).unwrap().segment_bytes, 16384);
        overrides.reverse();
        assert_eq!(parsed(&overrides).unwrap().segment_bytes, 16384);
        let overrides = [("segment.ms", "7"), ("segment.ms", "8")];
        assert_eq!(parsed(&overrides).unwrap().segment_ms, 8);
    }

    #[test]
    fn unknown_names_and_bad_values_are_errors() {
        assert!(matches!(parsed(&[("segment.byte", "1")]), Err(ConfigError::Unknown { .. })));
        for (name, value) in [
            ("segment.bytes", "0"),
            ("segment.bytes", "4294967296"),
            ("retention.ms", "-2"),
            ("cleanup.policy", "delete,shrink"),
            ("compression.type", "none"),
            ("min.cleanable.dirty.ratio", "1.5"),
            ("preallocate", "yes"),
        ] {
            assert!(
                matches!(parsed(&[(name, value)]), Err(ConfigError::Invalid { .. })),
                "{name}={value}"
            );
        }
    }

    #[test]
    fn an_override_that_cannot_be_used_leaves_the_base_and_is_reported() {
        let overrides = [("retention.ms", "-2"), ("segment.ms", "7"), ("no.such", "1")];
        let (config, refused) =
            LogConfig::resolve(&LogConfig::default(), overrides.iter().copied());
        assert_eq!(config, LogConfig { segment_ms: 7, ..LogConfig::default() });
        assert!(matches!(
            refused.as_slice(),
            [ConfigError::Invalid { .. }, ConfigError::Unknown { .. }]
        ));
    }

    #[test]
    fn settings_of_other_subsystems_are_accepted_and_change_nothing() {
        let config = parsed(&[("remote.storage.enable", "false")]).unwrap();
        assert_eq!(config, LogConfig::default());
    }

    #[test]
    fn durability_sets_only_the_flush_defaults() {
        let config = LogConfig::for_durability(Durability::Fsync);
        assert!(config.syncs_every_append());
        assert_eq!(LogConfig { flush_messages: i64::MAX, ..config }, LogConfig::default());
    }
}
