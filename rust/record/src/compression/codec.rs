//! The codecs by id and name, and their levels.

use std::ops::RangeInclusive;

/// The level that means the fast encoder (`CompressionType.LZ4_DEFAULT_LEVEL`).
pub(super) const LZ4_LEVEL_FAST: i32 = 9;

/// A batch's codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Uncompressed records.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy blocks in the framing of snappy-java ("xerial"), or one bare block.
    Snappy,
    /// LZ4 frames of independent blocks.
    Lz4,
    /// RFC 8878.
    Zstd,
}

/// A codec id or name that Kafka does not define.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown compression codec {0}")]
pub struct UnknownCompression(pub String);

impl Compression {
    /// All codecs, by id.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Its id in a batch's attributes.
    pub fn id(self) -> i16 {
        self as i16
    }

    /// Its name in `compression.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The valid levels of `compression.<codec>.level`; `None` for codecs without levels.
    ///
    /// They are equal to Kafka's.
    pub fn levels(self) -> Option<RangeInclusive<i32>> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(1..=9),
            Self::Lz4 => Some(1..=17),
            Self::Zstd => Some(-131_072..=22),
        }
    }

    /// The default level; `None` for codecs without levels.
    pub fn level_default(self) -> Option<i32> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some(6),
            Self::Lz4 => Some(LZ4_LEVEL_FAST),
            Self::Zstd => Some(3),
        }
    }

    /// The codec with that name; topics may also use `uncompressed` for `none`.
    pub fn from_name(name: &str) -> Result<Self, UnknownCompression> {
        let name = if name == "uncompressed" { "none" } else { name };
        let found = Self::ALL.into_iter().find(|codec| codec.name() == name);
        found.ok_or_else(|| UnknownCompression(name.to_owned()))
    }
}

impl TryFrom<i16> for Compression {
    type Error = UnknownCompression;

    fn try_from(id: i16) -> Result<Self, UnknownCompression> {
        let found = usize::try_from(id).ok().and_then(|id| Self::ALL.get(id));
        found.copied().ok_or_else(|| UnknownCompression(id.to_string()))
    }
}
