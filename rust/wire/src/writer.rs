//! Writes Kafka's primitive types, into one buffer or into [`Chunks`] that share record bytes.

use bytes::{Bytes, BytesMut};

use crate::EncodeError;
use crate::reader::STRING_BYTES_MAX;

/// A destination of encoded bytes.
pub trait Sink {
    /// Appends a copy of `bytes`.
    fn put(&mut self, bytes: &[u8]);
    /// Appends `bytes`, without a copy if the sink supports it.
    fn put_shared(&mut self, bytes: &Bytes);
    /// Reserves `size` bytes that the transport will insert.
    ///
    /// # Errors
    /// [`EncodeError::Room`] if the message is encoded into one buffer.
    fn put_room(&mut self, size: usize) -> Result<(), EncodeError>;
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_shared(&mut self, bytes: &Bytes) {
        self.extend_from_slice(bytes);
    }

    fn put_room(&mut self, _size: usize) -> Result<(), EncodeError> {
        Err(EncodeError::Room)
    }
}

impl Sink for BytesMut {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_shared(&mut self, bytes: &Bytes) {
        self.extend_from_slice(bytes);
    }

    fn put_room(&mut self, _size: usize) -> Result<(), EncodeError> {
        Err(EncodeError::Room)
    }
}

/// Counts the encoded bytes, to allocate a buffer of the right size.
#[derive(Debug, Default)]
pub struct ByteCount(usize);

impl ByteCount {
    /// Number of bytes so far.
    pub fn bytes(&self) -> usize {
        self.0
    }
}

impl Sink for ByteCount {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.0 += bytes.len();
    }

    fn put_shared(&mut self, bytes: &Bytes) {
        self.0 += bytes.len();
    }

    fn put_room(&mut self, size: usize) -> Result<(), EncodeError> {
        self.0 += size;
        Ok(())
    }
}

/// Record bytes below this size are copied: a separate chunk costs more in `writev`.
const SHARED_BYTES_MIN: usize = 512;

/// A part of an encoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Bytes in memory.
    Bytes(Bytes),
    /// This number of bytes of a file, which the transport inserts.
    Room(usize),
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Chunk::Bytes(bytes) => bytes.len(),
            Chunk::Room(size) => *size,
        }
    }
}

/// An encoded message as an ordered list of buffers; record bytes are shared, not copied.
#[derive(Debug, Default, Clone)]
pub struct Chunks {
    closed: Vec<Chunk>,
    open: BytesMut,
    size: usize,
}

impl Chunks {
    /// Creates an empty message.
    pub fn new() -> Chunks {
        Chunks::default()
    }

    /// Creates an empty message with a buffer for `bytes`.
    pub fn with_capacity(bytes: usize) -> Chunks {
        Chunks { open: BytesMut::with_capacity(bytes), ..Chunks::default() }
    }

    /// Size of all chunks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether no bytes were put.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The non-empty chunks in order.
    pub fn into_vec(mut self) -> Vec<Chunk> {
        self.close();
        self.closed
    }

    /// Puts `head` before all bytes, for a size prefix or a header that is only known at the end.
    pub fn prepend(&mut self, head: Bytes) {
        self.size += head.len();
        if !head.is_empty() {
            self.closed.insert(0, Chunk::Bytes(head));
        }
    }

    /// Copies all bytes into one buffer; file bytes are zeros there.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.size);
        for chunk in &self.closed {
            match chunk {
                Chunk::Bytes(bytes) => all.extend_from_slice(bytes),
                Chunk::Room(size) => all.resize(all.len() + size, 0),
            }
        }
        all.extend_from_slice(&self.open);
        all.freeze()
    }

    fn push(&mut self, chunk: Chunk) {
        self.size += chunk.len();
        self.close();
        self.closed.push(chunk);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push(Chunk::Bytes(self.open.split().freeze()));
        }
    }
}

impl From<Bytes> for Chunks {
    fn from(bytes: Bytes) -> Chunks {
        let mut chunks = Chunks::new();
        chunks.prepend(bytes);
        chunks
    }
}

impl From<Vec<u8>> for Chunks {
    fn from(bytes: Vec<u8>) -> Chunks {
        Bytes::from(bytes).into()
    }
}

impl Sink for Chunks {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.size += bytes.len();
        self.open.extend_from_slice(bytes);
    }

    fn put_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            return self.put(bytes);
        }
        self.push(Chunk::Bytes(bytes.clone()));
    }

    fn put_room(&mut self, size: usize) -> Result<(), EncodeError> {
        self.push(Chunk::Room(size));
        Ok(())
    }
}

/// Writes one message body of a version.
#[derive(Debug)]
pub struct Writer<'s, S> {
    sink: &'s mut S,
    version: i16,
    flexible: bool,
}

impl<'s, S: Sink> Writer<'s, S> {
    /// Writes into `sink`, after its present content.
    pub fn new(sink: &'s mut S, version: i16, flexible: bool) -> Writer<'s, S> {
        Writer { sink, version, flexible }
    }

    /// Version of the message.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Whether the message has compact lengths and tagged fields.
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Raw bytes.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.sink.put(bytes);
    }

    /// Raw bytes, shared if the sink supports it.
    pub fn put_shared(&mut self, bytes: &Bytes) {
        self.sink.put_shared(bytes);
    }

    /// Reserves bytes that the transport will insert.
    pub fn put_room(&mut self, size: usize) -> Result<(), EncodeError> {
        self.sink.put_room(size)
    }

    /// An unsigned varint.
    #[inline]
    pub fn uvarint(&mut self, value: u32) {
        let (encoded, size) = encode_uvarint(value);
        self.sink.put(&encoded[..size]);
    }

    /// Length of a string; `None` means null.
    #[inline]
    pub fn string_length(&mut self, length: Option<usize>) -> Result<(), EncodeError> {
        if self.flexible {
            if let Some(length) = length.filter(|&length| length > STRING_BYTES_MAX) {
                return Err(EncodeError::TooLong { length });
            }
            return self.compact_length(length);
        }
        let length = length.map_or(Ok(-1), |length| {
            i16::try_from(length).map_err(|_| EncodeError::TooLong { length })
        })?;
        self.sink.put(&length.to_be_bytes());
        Ok(())
    }

    /// Length of a byte string, an array or records; `None` means null.
    #[inline]
    pub fn length(&mut self, length: Option<usize>) -> Result<(), EncodeError> {
        if self.flexible {
            return self.compact_length(length);
        }
        let length = length.map_or(Ok(-1), |length| {
            i32::try_from(length).map_err(|_| EncodeError::TooLong { length })
        })?;
        self.sink.put(&length.to_be_bytes());
        Ok(())
    }

    #[inline]
    fn compact_length(&mut self, length: Option<usize>) -> Result<(), EncodeError> {
        let coded = length.map_or(Ok(0), |length| {
            i32::try_from(length)
                .map(|length| length as u32 + 1)
                .map_err(|_| EncodeError::TooLong { length })
        })?;
        self.uvarint(coded);
        Ok(())
    }

    /// A string; `None` means null.
    #[inline]
    pub fn string(&mut self, value: Option<&str>) -> Result<(), EncodeError> {
        self.string_length(value.map(str::len))?;
        self.put(value.unwrap_or_default().as_bytes());
        Ok(())
    }

    /// Bytes or records; `None` means null.
    #[inline]
    pub fn bytes(&mut self, value: Option<&[u8]>) -> Result<(), EncodeError> {
        self.length(value.map(<[u8]>::len))?;
        self.put(value.unwrap_or_default());
        Ok(())
    }

    /// One tagged field: its tag, its size and the output of `write`.
    pub fn tagged_field<E: From<EncodeError>>(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Writer<'_, Vec<u8>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut value = Vec::new();
        write(&mut Writer::new(&mut value, self.version, self.flexible))?;
        self.uvarint(tag);
        let size =
            i32::try_from(value.len()).map_err(|_| EncodeError::TooLong { length: value.len() })?;
        self.uvarint(size as u32);
        self.put(&value);
        Ok(())
    }
}

/// The bytes of an unsigned varint and their number.
#[inline]
pub fn encode_uvarint(mut value: u32) -> ([u8; 5], usize) {
    let mut encoded = [0; 5];
    let mut size = 0;
    while value >= 0x80 {
        encoded[size] = value as u8 | 0x80;
        value >>= 7;
        size += 1;
    }
    encoded[size] = value as u8;
    (encoded, size + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;
    use proptest::prelude::*;

    #[test]
    fn chunks_share_large_record_bytes_and_copy_small_ones() {
        let large = Bytes::from(vec![7; SHARED_BYTES_MIN]);
        let mut chunks = Chunks::new();
        chunks.put(b"head");
        chunks.put_shared(&Bytes::from_static(b"small"));
        chunks.put_shared(&large);
        chunks.put(b"foot");
        assert_eq!(chunks.size(), chunks.to_bytes().len());
        let chunks = chunks.into_vec();
        let [Chunk::Bytes(head), Chunk::Bytes(shared), Chunk::Bytes(foot)] = &chunks[..] else {
            panic!("{chunks:?}")
        };
        assert_eq!((&head[..], &foot[..]), (&b"headsmall"[..], &b"foot"[..]));
        assert_eq!(shared.as_ptr(), large.as_ptr());
    }

    #[test]
    fn reserved_space_keeps_its_position_and_a_whole_message_rejects_it() {
        let mut chunks = Chunks::new();
        chunks.put(b"head");
        chunks.put_room(7).unwrap();
        chunks.put(b"foot");
        assert_eq!((chunks.size(), &chunks.to_bytes()[..]), (15, &b"head\0\0\0\0\0\0\0foot"[..]));
        assert_eq!(chunks.into_vec()[1], Chunk::Room(7));
        assert_eq!(Vec::new().put_room(7), Err(EncodeError::Room));
        assert_eq!(BytesMut::new().put_room(7), Err(EncodeError::Room));
    }

    proptest! {
        #[test]
        fn varints_round_trip(value: u32) {
            let (encoded, size) = encode_uvarint(value);
            prop_assert_eq!(Reader::new(&encoded[..size], 0, true).uvarint(), Ok(value));
        }
    }
}
