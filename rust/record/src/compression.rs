//! The five codecs of batches, with bounded decompression.
//!
//! The size that a frame claims is untrusted. Output only grows up to
//! [`Limits::output_bytes_max`], and no memory is allocated for a claim above it.
//!
//! Each codec decodes in steps, into a [`sink::Sink`]: the whole output for [`decompress`], or a
//! window that is emptied between steps for [`Inflater`].
//!
//! Contexts of gzip and zstd are expensive to create, so they are kept per thread.

mod codec;
mod decoder;
mod encoder;
mod error;
mod gzip;
mod inflater;
mod limits;
mod lz4;
mod sink;
mod snappy;
mod xxh32;
mod zstd;

pub use self::codec::{Compression, UnknownCompression};
pub use self::decoder::decompress;
pub(crate) use self::decoder::{Source, decompress_from};
pub(crate) use self::encoder::Encoder;
pub use self::encoder::compress;
pub use self::error::CompressionError;
pub(crate) use self::inflater::Inflater;
pub use self::limits::Limits;
