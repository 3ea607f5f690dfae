//! Bounds-checked reading of Kafka's primitive types from borrowed bytes.
//!
//! Every declared length is compared with the remaining bytes before anything is read or allocated,
//! as in Kafka's generated readers. Array elements are counted over the whole message, because an
//! element of a few bytes can take a hundred in memory.

use std::ops::Range;

use bytes::Bytes;

use crate::DecodeError;

/// Maximum number of array elements in a message, except fixed-size primitives.
///
/// Otherwise a request of 100 MiB could hold 50 million empty structs. The largest clusters have
/// about 200,000 partitions in one message.
pub const OBJECTS_MAX: usize = 1 << 20;

/// Maximum number of elements in a list, as in Kafka 4.4 for all messages and versions
/// (`MessageUtil.MAX_ARRAY_LENGTH`).
pub const LIST_LENGTH_MAX: usize = 1_000_000;

/// Maximum number of tagged fields in a struct (`MessageUtil.MAX_TAGGED_FIELD_COUNT` of Kafka 4.4).
pub const TAGGED_FIELDS_MAX: u32 = 10_000;

/// Maximum length of a string in bytes, in both length formats.
pub(crate) const STRING_BYTES_MAX: usize = i16::MAX as usize;

/// Replacement for a string that is not UTF-8.
///
/// Kafka replaces each invalid byte by U+FFFD. No valid name contains this character, so a single
/// one is sufficient, and the reader need not allocate.
const NOT_UTF8: &str = "\u{FFFD}";

/// The range of `inner` within `outer`, for a caller that needs to own or change that part of a
/// body after its borrow has ended. `None` if it is not a part.
pub fn span_within(outer: &[u8], inner: &[u8]) -> Option<Range<usize>> {
    let start = inner.as_ptr().addr().checked_sub(outer.as_ptr().addr())?;
    let end = start.checked_add(inner.len())?;
    (end <= outer.len()).then_some(start..end)
}

/// Position and counts of a reader.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    position: usize,
    objects: usize,
    tagged_fields: usize,
}

impl Progress {
    /// List elements so far, including those of incomplete lists.
    pub fn objects(&self) -> usize {
        self.objects
    }
}

/// A cursor over one message body.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    objects: usize,
    tagged_fields: usize,
    owner: Option<&'a Bytes>,
    version: i16,
    flexible: bool,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` as a message of `version`; `flexible` must match its table row.
    pub fn new(bytes: &'a [u8], version: i16, flexible: bool) -> Reader<'a> {
        let Progress { position, objects, tagged_fields } = Progress::default();
        Reader { bytes, position, objects, tagged_fields, owner: None, version, flexible }
    }

    /// Like [`Reader::new`], but record bytes share `owner` instead of being copied.
    pub fn sharing(owner: &'a Bytes, version: i16, flexible: bool) -> Reader<'a> {
        Reader { owner: Some(owner), ..Reader::new(owner, version, flexible) }
    }

    /// A reader that continues at the progress of another one with the same bytes and version.
    pub fn resume(bytes: &'a [u8], version: i16, flexible: bool, progress: Progress) -> Reader<'a> {
        let Progress { position, objects, tagged_fields } = progress;
        assert!(position <= bytes.len(), "progress is of a reader of the same bytes");
        Reader { position, objects, tagged_fields, ..Reader::new(bytes, version, flexible) }
    }

    /// Its progress, for [`Reader::resume`].
    pub fn progress(&self) -> Progress {
        let Reader { position, objects, tagged_fields, .. } = *self;
        Progress { position, objects, tagged_fields }
    }

    /// Version of the message.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Whether the message has compact lengths and tagged fields.
    pub fn is_flexible(&self) -> bool {
        self.flexible
    }

    /// Number of tagged fields in the structs read so far, including unknown ones.
    pub fn tagged_fields_read(&self) -> usize {
        self.tagged_fields
    }

    /// Number of bytes read so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Number of remaining bytes.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// The next `size` bytes.
    #[inline]
    pub fn take(&mut self, size: usize) -> Result<&'a [u8], DecodeError> {
        let remaining = self.remaining();
        if size > remaining {
            return Err(DecodeError::Truncated {
                position: self.position,
                needed: size,
                remaining,
            });
        }
        let start = self.position;
        self.position += size;
        Ok(&self.bytes[start..self.position])
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("take returns as many bytes as asked for"))
    }

    /// An int8.
    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// An int16.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// An int32.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// An int64.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// An unsigned varint of 32 bits: at most five bytes, the last at most 15.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        let start = self.position;
        let mut value = 0u32;
        for shift in (0..35).step_by(7) {
            let byte = self.array::<1>()?[0];
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::VarintTooLong { position: start })
    }

    /// Length of a string; -1 means null.
    #[inline]
    pub fn string_length(&mut self) -> Result<Option<usize>, DecodeError> {
        if !self.flexible {
            let length = self.i16()?;
            return self.checked_length(i64::from(length));
        }
        match self.compact_length()? {
            // Kafka keeps the limit of the old length field.
            Some(length) if length > STRING_BYTES_MAX => {
                Err(DecodeError::Length { length: length as i64, position: self.position })
            }
            length => Ok(length),
        }
    }

    /// Length of a list, at most [`LIST_LENGTH_MAX`]; -1 means null.
    #[inline]
    pub fn list_length(&mut self) -> Result<Option<usize>, DecodeError> {
        match self.length()? {
            Some(length) if length > LIST_LENGTH_MAX => {
                Err(DecodeError::ListTooLong { length, max: LIST_LENGTH_MAX })
            }
            length => Ok(length),
        }
    }

    /// Length of a byte string, an array or records; -1 means null.
    #[inline]
    fn length(&mut self) -> Result<Option<usize>, DecodeError> {
        if self.flexible {
            return self.compact_length();
        }
        let length = self.i32()?;
        self.checked_length(i64::from(length))
    }

    #[inline]
    fn compact_length(&mut self) -> Result<Option<usize>, DecodeError> {
        let length = i64::from(self.uvarint()?) - 1;
        self.checked_length(length)
    }

    /// No field has more items than bytes remain, so every length is checked against them.
    #[inline]
    fn checked_length(&self, length: i64) -> Result<Option<usize>, DecodeError> {
        match usize::try_from(length) {
            Ok(length) if length <= self.remaining() => Ok(Some(length)),
            Ok(length) => Err(DecodeError::Truncated {
                position: self.position,
                needed: length,
                remaining: self.remaining(),
            }),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(DecodeError::Length { length, position: self.position }),
        }
    }

    /// A string; invalid UTF-8 is read as one U+FFFD.
    #[inline]
    pub fn string(&mut self) -> Result<Option<&'a str>, DecodeError> {
        let Some(length) = self.string_length()? else { return Ok(None) };
        let bytes = self.take(length)?;
        Ok(Some(str::from_utf8(bytes).unwrap_or(NOT_UTF8)))
    }

    /// Bytes or records.
    #[inline]
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, DecodeError> {
        match self.length()? {
            Some(length) => self.take(length).map(Some),
            None => Ok(None),
        }
    }

    /// Bytes or records that share the owner's memory; a copy without an owner.
    pub fn shared_bytes(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        Ok(Some(match self.owner {
            Some(owner) => owner.slice_ref(bytes),
            None => Bytes::copy_from_slice(bytes),
        }))
    }

    /// Adds `count` elements to the count that is limited by [`OBJECTS_MAX`].
    #[inline]
    pub fn count_objects(&mut self, count: usize) -> Result<(), DecodeError> {
        self.objects += count;
        if self.objects > OBJECTS_MAX {
            return Err(DecodeError::TooManyObjects { max: OBJECTS_MAX });
        }
        Ok(())
    }

    /// Reads the tagged fields at the end of a flexible struct; `read` returns whether it supports
    /// the tag. Unsupported ones are skipped.
    #[inline]
    pub fn tagged_fields<E: From<DecodeError>>(
        &mut self,
        mut read: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let count = self.uvarint()?;
        if count > TAGGED_FIELDS_MAX {
            return Err(DecodeError::TooManyTags { count, max: TAGGED_FIELDS_MAX }.into());
        }
        self.tagged_fields += count as usize;
        let mut previous = None;
        for _ in 0..count {
            let tag = self.uvarint()?;
            if previous.is_some_and(|previous| tag <= previous) {
                return Err(DecodeError::TagOrder { tag, position: self.position }.into());
            }
            previous = Some(tag);
            self.tagged_field(tag, &mut read)?;
        }
        Ok(())
    }

    fn tagged_field<E: From<DecodeError>>(
        &mut self,
        tag: u32,
        read: &mut impl FnMut(u32, &mut Reader<'a>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let declared = self.uvarint()? as usize;
        let start = self.position;
        self.take(declared)?;
        let end = self.position;
        // The value is read with its own end as the limit, so it cannot read the following bytes.
        let whole = self.bytes;
        self.bytes = &whole[..end];
        self.position = start;
        let known = read(tag, self)?;
        let taken = self.position - start;
        self.bytes = whole;
        self.position = end;
        if known && taken != declared {
            return Err(DecodeError::TagSize { tag, declared, taken }.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new(bytes, 0, true)
    }

    #[test]
    fn varints_are_read_as_protobuf_writes_them() {
        for (bytes, value) in [
            (&[0][..], 0),
            (&[0x7f], 127),
            (&[0x80, 1], 128),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], u32::MAX),
        ] {
            assert_eq!(reader(bytes).uvarint(), Ok(value));
        }
    }

    #[test]
    fn varints_over_their_width_are_rejected() {
        for bytes in [&[0xff; 6][..], &[0x80; 11], &[0xff, 0xff, 0xff, 0xff, 0x10]] {
            assert_eq!(reader(bytes).uvarint(), Err(DecodeError::VarintTooLong { position: 0 }));
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_rejected_before_any_allocation() {
        let mut compact = reader(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2]);
        assert!(matches!(compact.length(), Err(DecodeError::Truncated { remaining: 2, .. })));
        let mut plain = Reader::new(&[0x7f, 0xff, 0xff, 0xff, 1], 0, false);
        assert!(matches!(plain.length(), Err(DecodeError::Truncated { remaining: 1, .. })));
        let mut negative = Reader::new(&[0xff, 0xff, 0xff, 0xfe], 0, false);
        assert!(matches!(negative.length(), Err(DecodeError::Length { length: -2, .. })));
    }

    #[test]
    fn tags_must_increase_and_match_their_size() {
        let skip = |_: u32, _: &mut Reader<'_>| Ok::<_, DecodeError>(false);
        assert!(reader(&[2, 0, 1, 9, 1, 0]).tagged_fields(skip).is_ok());
        let error = reader(&[2, 1, 0, 1, 0]).tagged_fields(skip);
        assert!(matches!(error, Err(DecodeError::TagOrder { tag: 1, .. })));
        let read = |_: u32, r: &mut Reader<'_>| r.i8().map(|_| true);
        let error = reader(&[1, 0, 2, 7, 7]).tagged_fields(read);
        assert_eq!(error, Err(DecodeError::TagSize { tag: 0, declared: 2, taken: 1 }));
        let error = reader(&[1, 0, 0, 7]).tagged_fields(read);
        assert!(matches!(error, Err(DecodeError::Truncated { remaining: 0, .. })));
    }

    #[test]
    fn lists_and_tagged_fields_have_the_bounds_of_kafka() {
        let longest = |length: usize| {
            let mut bytes = (length as i32).to_be_bytes().to_vec();
            bytes.resize(bytes.len() + length, 0);
            Reader::new(&bytes, 0, false).list_length()
        };
        assert_eq!(longest(1_000_000), Ok(Some(1_000_000)));
        let error = DecodeError::ListTooLong { length: 1_000_001, max: 1_000_000 };
        assert_eq!(longest(1_000_001), Err(error));
        let tagged = |count: u32| {
            let mut bytes = Vec::new();
            let mut writer = crate::Writer::new(&mut bytes, 0, true);
            writer.uvarint(count);
            for tag in 0..count {
                writer.uvarint(tag);
                writer.uvarint(0);
            }
            let mut reader = reader(&bytes);
            let result = reader.tagged_fields(|_, _| Ok::<_, DecodeError>(false));
            result.map(|()| reader.tagged_fields_read())
        };
        assert_eq!(tagged(10_000), Ok(10_000));
        let error = DecodeError::TooManyTags { count: 10_001, max: 10_000 };
        assert_eq!(tagged(10_001), Err(error));
    }

    #[test]
    fn strings_that_are_not_utf8_get_the_replacement_character() {
        assert_eq!(reader(&[3, 0xff, 0xfe]).string(), Ok(Some("\u{FFFD}")));
    }
}
