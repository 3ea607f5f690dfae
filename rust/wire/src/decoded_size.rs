//! Estimates the memory of a message after it is decoded to Python objects.
//!
//! Elements of two bytes can become objects of a hundred, so the memory is not proportional to the
//! size of the request. Its elements are counted by the same code that decodes it.

use crate::codec::{Builder, decode};
use crate::schema::{Struct, request_of};
use crate::{ApiKey, DecodeError};

/// An object's header, including that of the garbage collector.
const OBJECT_BYTES: usize = 40;
/// A slot in an object or list.
const SLOT_BYTES: usize = 8;
/// A list's header and its growing array.
const LIST_BYTES: usize = 88;
const INTEGER_BYTES: usize = 32;
/// A string's header.
const STRING_BYTES: usize = 56;

/// Memory of a request of `api_key` after it is decoded, in bytes.
///
/// # Errors
/// The request is malformed.
pub fn decoded_size(api_key: ApiKey, version: i16, body: &[u8]) -> Result<usize, DecodeError> {
    let unknown = DecodeError::UnsupportedVersion { api_key: api_key.0, version };
    let plan = request_of(api_key).ok_or(unknown)?.plan(version)?;
    let mut size = Size(0);
    decode(plan, body, &mut size)?;
    Ok(size.0)
}

struct Size(usize);

impl Builder<'_> for Size {
    type Value = ();
    type Object = ();
    type List = ();
    type Error = DecodeError;

    fn object(&mut self, schema: &'static Struct) -> Result<(), DecodeError> {
        self.0 += OBJECT_BYTES + schema.fields.len() * SLOT_BYTES;
        Ok(())
    }

    fn set(&mut self, (): &mut (), _: usize, (): ()) {}

    fn finish_object(&mut self, (): ()) {}

    fn default(&mut self, _: &'static Struct, _: usize) -> Result<(), DecodeError> {
        self.0 += INTEGER_BYTES;
        Ok(())
    }

    fn list(&mut self, _: usize) -> Result<(), DecodeError> {
        self.0 += LIST_BYTES;
        Ok(())
    }

    fn push(&mut self, (): &mut (), (): ()) -> Result<(), DecodeError> {
        self.0 += SLOT_BYTES;
        Ok(())
    }

    fn finish_list(&mut self, (): ()) -> Result<(), DecodeError> {
        Ok(())
    }

    fn null(&mut self) {}

    fn boolean(&mut self, _: bool) {}

    fn integer(&mut self, _: i64) -> Result<(), DecodeError> {
        self.0 += INTEGER_BYTES;
        Ok(())
    }

    fn float(&mut self, _: f64) -> Result<(), DecodeError> {
        self.0 += INTEGER_BYTES;
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.0 += STRING_BYTES + bytes.len();
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.0 += STRING_BYTES + bytes.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `CreateTopics` of `count` topics without a name, 12 bytes each.
    fn create_topics(count: usize) -> Vec<u8> {
        let mut body = (count as i32).to_be_bytes().to_vec();
        for _ in 0..count {
            body.extend_from_slice(&[0; 16]);
        }
        body.extend_from_slice(&[0; 5]);
        body
    }

    #[test]
    fn elements_count_instead_of_their_bytes() {
        let size = |count| decoded_size(ApiKey::CREATE_TOPICS, 4, &create_topics(count)).unwrap();
        let of_one = size(1) - size(0);
        assert!(of_one > 10 * 16, "{of_one}");
        assert_eq!(size(1_000) - size(0), 1_000 * of_one);
    }

    #[test]
    fn a_count_without_its_elements_is_an_error() {
        let body = 1_000_000_i32.to_be_bytes();
        assert!(decoded_size(ApiKey::CREATE_TOPICS, 4, &body).is_err());
    }
}
