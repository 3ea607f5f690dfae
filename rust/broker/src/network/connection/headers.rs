//! The header of a request.

use std::sync::Arc;

use bytes::BytesMut;
use pykafka_wire::DecodeError;
use pykafka_wire::frame::RequestHeader;

use super::arrivals::Moment;
use crate::request::Header;

/// Decodes the headers of one connection, whose requests share the string of their client id.
pub(super) struct Headers {
    client_id: Arc<str>,
}

impl Headers {
    pub(super) fn new() -> Headers {
        Headers { client_id: Arc::from("") }
    }

    /// Splits a frame that was complete at `received` into its header and its body.
    pub(super) fn split(
        &mut self,
        mut frame: BytesMut,
        (received_ns, received_ms): Moment,
    ) -> Result<(Header, BytesMut), DecodeError> {
        let bytes = frame.len();
        let (header, body) = RequestHeader::decode(&frame)?;
        let body_size = body.len();
        let header = Header {
            api_key: header.api_key,
            api_version: header.api_version,
            correlation_id: header.correlation_id,
            client_id: self.shared(header.client_id.unwrap_or_default()),
            bytes,
            received_ns,
            received_ms,
        };
        let body = frame.split_off(bytes - body_size);
        Ok((header, body))
    }

    fn shared(&mut self, client_id: &str) -> Arc<str> {
        if *self.client_id != *client_id {
            self.client_id = Arc::from(client_id);
        }
        self.client_id.clone()
    }
}
