//! CRC-32C (Castagnoli), as batches and producer snapshots carry it.

/// The CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The CRC-32C of bytes that come in pieces.
#[derive(Debug, Clone)]
pub struct Crc32c(crc_fast::Digest);

impl Crc32c {
    /// Of no bytes yet.
    pub fn new() -> Self {
        Self(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi))
    }

    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The CRC of all pieces.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{Crc32c, crc32c};

    #[test]
    fn pieces_have_the_crc_of_the_whole() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
        for at in [0, 1, 61, 255, 1024, 3000] {
            let mut crc = Crc32c::new();
            crc.update(&bytes[..at]);
            crc.update(&bytes[at..]);
            assert_eq!(crc.value(), crc32c(&bytes));
        }
    }

    #[test]
    fn matches_the_check_value_of_castagnoli() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(b""), 0);
    }
}
