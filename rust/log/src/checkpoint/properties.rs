//! `meta.properties`, `.kafka_cleanshutdown`, and topic ids as text.

use std::fmt::Write as _;

use super::error::CheckpointError;

/// Identity of a log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// Id of the cluster, as text.
    pub cluster_id: String,
    /// Id of the node that the directory belongs to.
    pub node_id: i32,
    /// Id of the directory; absent in files of version 0.
    pub directory_id: Option<String>,
}

impl MetaProperties {
    /// Reads versions 1 and 0 (which has `broker.id`); ignores unknown keys.
    pub fn read(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let text = std::str::from_utf8(bytes).map_err(|_| CheckpointError::Encoding)?;
        let version = property(text, "version").ok_or(CheckpointError::Field("version"))?;
        let node_key = match version {
            "1" => "node.id",
            "0" => "broker.id",
            other => return Err(CheckpointError::Version(other.chars().take(100).collect())),
        };
        let node_id = property(text, node_key).and_then(|id| id.parse().ok());
        Ok(MetaProperties {
            cluster_id: property(text, "cluster.id")
                .ok_or(CheckpointError::Field("cluster.id"))?
                .to_owned(),
            node_id: node_id.ok_or(CheckpointError::Field("node.id"))?,
            directory_id: property(text, "directory.id").map(str::to_owned),
        })
    }

    /// Writes version 1 with sorted keys.
    pub fn write(&self) -> Vec<u8> {
        let mut text = format!("cluster.id={}\n", self.cluster_id);
        if let Some(directory_id) = &self.directory_id {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "directory.id={directory_id}");
        }
        let _ = writeln!(text, "node.id={}\nversion=1", self.node_id);
        text.into_bytes()
    }
}

/// The value of `key` in a properties file: `key=value` or `key: value`, with comments after `#`
/// and `!`.
fn property<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', '!']));
    let pairs = lines.filter_map(|line| line.split_once(['=', ':']));
    let mut values = pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim());
    values.next_back().filter(|value| !value.is_empty())
}

/// Content of `.kafka_cleanshutdown`, which marks a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanShutdown {
    /// Epoch of the broker that stopped; −1 if unknown.
    pub broker_epoch: i64,
}

impl CleanShutdown {
    /// Reads the marker. Old releases write an empty one, without an epoch.
    pub fn read(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let text = std::str::from_utf8(bytes).map_err(|_| CheckpointError::Encoding)?.trim();
        if text.is_empty() {
            return Ok(CleanShutdown { broker_epoch: -1 });
        }
        let fields = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let field = |name: &str| -> Option<i64> {
            let pairs = fields?.split(',').filter_map(|pair| pair.split_once(':'));
            let mut found = pairs.filter(|(key, _)| key.trim().trim_matches('"') == name);
            found.next()?.1.trim().parse().ok()
        };
        match field("version") {
            Some(0) => {}
            Some(other) => return Err(CheckpointError::Version(other.to_string())),
            None => return Err(CheckpointError::Field("version")),
        }
        let broker_epoch = field("brokerEpoch").ok_or(CheckpointError::Field("brokerEpoch"))?;
        Ok(CleanShutdown { broker_epoch })
    }

    /// Writes the marker.
    pub fn write(self) -> Vec<u8> {
        format!("{{\"version\":0,\"brokerEpoch\":{}}}", self.broker_epoch).into_bytes()
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Length of 16 bytes in base64 without padding.
const ID_CHARS: usize = 22;

/// A topic id as Kafka prints it: URL-safe base64 without padding.
pub fn write_topic_id(id: [u8; 16]) -> String {
    let bits = u128::from_be_bytes(id);
    // 22 × 6 = 132 bits: the last character holds 2 bits of the id and 4 of padding.
    let shifted = |index: usize| match (ID_CHARS - 1 - index) * 6 {
        0 => bits << 4,
        shift => bits >> (shift - 4),
    };
    (0..ID_CHARS).map(|index| char::from(BASE64[(shifted(index) & 63) as usize])).collect()
}

/// Reads the output of [`write_topic_id`]; `None` for any other text.
pub fn parse_topic_id(text: &str) -> Option<[u8; 16]> {
    if text.len() != ID_CHARS {
        return None;
    }
    let (last, rest) = text.as_bytes().split_last()?;
    let digit = |char: &u8| BASE64.iter().position(|known| known == char).map(|at| at as u128);
    let bits = rest.iter().try_fold(0u128, |bits, char| Some(bits << 6 | digit(char)?))?;
    let tail = digit(last)?;
    (tail.trailing_zeros() >= 4).then(|| (bits << 2 | tail >> 4).to_be_bytes())
}
