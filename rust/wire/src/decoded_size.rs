//! How much memory a message takes once it is decoded to Python's objects, judged from its bytes.
//!
//! Elements of two bytes become objects of a hundred: what a request may take is no multiple of its size. So its elements
//! are counted, by the same walk that decodes it.

use crate::codec::{Builder, decode};
use crate::schema::{Struct, request_of};
use crate::{ApiKey, DecodeError};

/// An object's head with what the garbage collector keeps of it.
const OBJECT_BYTES: usize = 40;
/// A place in an object or in a list.
const SLOT_BYTES: usize = 8;
/// A list's head and the array that it grows.
const LIST_BYTES: usize = 88;
const INTEGER_BYTES: usize = 32;
/// Before its characters.
const STRING_BYTES: usize = 56;

/// Bytes that a request of `api_key` takes once it is decoded.
///
/// # Errors
/// It does not parse.
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
    fn elements_count_and_not_their_bytes() {
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
