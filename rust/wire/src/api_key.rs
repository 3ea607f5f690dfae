//! API keys, their versions, and the flexible versions.

mod lookup;
mod types;

pub use self::lookup::{apis, is_flexible, known_versions, supported_versions};
pub use self::types::{Api, ApiKey};
