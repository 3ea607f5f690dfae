//! The checksums of batches: CRC-32C (Castagnoli), and CRC-32 (ISO-HDLC) in formats 0 and 1.

/// The CRC-32C of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The CRC-32 of `bytes`, which librdkafka's `consistent` partitioners also use.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// The algorithm of a batch's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChecksumAlgorithm {
    /// Formats 0 and 1.
    Crc32,
    /// Format 2.
    Crc32c,
}

/// An incremental checksum.
#[derive(Debug, Clone)]
pub struct Checksum(crc_fast::Digest);

impl Checksum {
    /// Creates the checksum of no bytes.
    pub(crate) fn new(algorithm: ChecksumAlgorithm) -> Self {
        Self(crc_fast::Digest::new(match algorithm {
            ChecksumAlgorithm::Crc32 => crc_fast::CrcAlgorithm::Crc32IsoHdlc,
            ChecksumAlgorithm::Crc32c => crc_fast::CrcAlgorithm::Crc32Iscsi,
        }))
    }

    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all pieces.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Checksum, ChecksumAlgorithm, crc32, crc32c};

    #[test]
    fn pieces_have_the_crc_of_the_whole() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
        for at in [0, 1, 61, 255, 1024, 3000] {
            for (algorithm, whole) in [
                (ChecksumAlgorithm::Crc32c, crc32c(&bytes)),
                (ChecksumAlgorithm::Crc32, crc32(&bytes)),
            ] {
                let mut crc = Checksum::new(algorithm);
                crc.update(&bytes[..at]);
                crc.update(&bytes[at..]);
                assert_eq!(crc.value(), whole);
            }
        }
    }

    #[test]
    fn check_values_match_the_catalogue() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32c(b""), 0);
    }
}
