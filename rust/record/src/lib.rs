//! Record batches v2: CRC-32C, compression, murmur2, batch to Arrow columns and back; no I/O.
