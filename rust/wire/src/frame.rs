//! The headers of requests and responses. A frame on the wire is a four-byte size, a header and a
//! body; the transport handles the size.

use crate::{ApiKey, DecodeError, Reader, Sink, Wire, Writer, is_flexible};

/// The header of every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader<'a> {
    /// The requested API, known or not.
    pub api_key: ApiKey,
    /// Version of header and body.
    pub api_version: i16,
    /// Repeated in the response.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<&'a str>,
}

impl<'a> RequestHeader<'a> {
    /// Splits a frame, without its size, into header and body.
    ///
    /// The header has version 2 (with tagged fields) if the request is flexible, else version 1. An
    /// unknown later version is treated as flexible if the API is, as in Kafka: the response to
    /// such an `ApiVersions` request needs the correlation id.
    pub fn decode(frame: &'a [u8]) -> Result<(RequestHeader<'a>, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(frame, 0, false);
        let header = RequestHeader {
            api_key: ApiKey(reader.i16()?),
            api_version: reader.i16()?,
            correlation_id: reader.i32()?,
            client_id: reader.string()?,
        };
        if header.has_tagged_fields() {
            reader.tagged_fields(|_, _| Ok::<_, DecodeError>(false))?;
        }
        Ok((header, reader.rest()))
    }

    /// Appends the header to `out`.
    pub fn encode<S: Sink>(&self, out: &mut S) -> Result<(), crate::EncodeError> {
        let mut writer = Writer::new(out, 0, false);
        self.api_key.0.write(&mut writer)?;
        self.api_version.write(&mut writer)?;
        self.correlation_id.write(&mut writer)?;
        writer.string(self.client_id)?;
        if self.has_tagged_fields() {
            writer.put(&[0]);
        }
        Ok(())
    }

    fn has_tagged_fields(&self) -> bool {
        is_flexible(self.api_key, self.api_version)
    }
}

/// Appends the header of a response to `out`: version 1 (with tagged fields) if the API is
/// flexible, else 0, and always 0 for `ApiVersions`.
pub fn response_header<S: Sink>(
    api_key: ApiKey,
    api_version: i16,
    correlation_id: i32,
    out: &mut S,
) {
    out.put(&correlation_id.to_be_bytes());
    if response_has_tagged_fields(api_key, api_version) {
        out.put(&[0]);
    }
}

/// Splits a response frame into correlation id and body.
pub fn decode_response_header(
    api_key: ApiKey,
    api_version: i16,
    frame: &[u8],
) -> Result<(i32, &[u8]), DecodeError> {
    let mut reader = Reader::new(frame, 0, false);
    let correlation_id = reader.i32()?;
    if response_has_tagged_fields(api_key, api_version) {
        reader.tagged_fields(|_, _| Ok::<_, DecodeError>(false))?;
    }
    Ok((correlation_id, reader.rest()))
}

fn response_has_tagged_fields(api_key: ApiKey, api_version: i16) -> bool {
    api_key != ApiKey::API_VERSIONS && is_flexible(api_key, api_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_version_2_where_the_request_is_flexible() {
        let frame = [0, 18, 0, 3, 0, 0, 0, 5, 0, 2, b'm', b'e', 0, 9];
        let (header, body) = RequestHeader::decode(&frame).unwrap();
        assert_eq!(header.api_key, ApiKey::API_VERSIONS);
        assert_eq!((header.correlation_id, header.client_id), (5, Some("me")));
        assert_eq!(body, [9]);
        let mut encoded = Vec::new();
        header.encode(&mut encoded).unwrap();
        assert_eq!(encoded, frame[..13]);
    }

    #[test]
    fn api_versions_response_header_is_always_version_0() {
        for version in 0..=4 {
            let mut out = Vec::new();
            response_header(ApiKey::API_VERSIONS, version, 7, &mut out);
            assert_eq!(out, [0, 0, 0, 7]);
        }
        let mut out = Vec::new();
        response_header(ApiKey::PRODUCE, 9, 7, &mut out);
        assert_eq!(out, [0, 0, 0, 7, 0]);
        assert_eq!(decode_response_header(ApiKey::PRODUCE, 9, &out), Ok((7, &[][..])));
    }

    #[test]
    fn a_truncated_header_is_an_error() {
        let frame = [0, 18, 0, 3, 0, 0, 0, 5, 0, 2, b'm', b'e', 0];
        for end in 0..frame.len() {
            assert!(RequestHeader::decode(&frame[..end]).is_err());
        }
    }
}
