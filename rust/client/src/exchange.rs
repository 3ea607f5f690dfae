//! The protocol of one connection, without the connection itself: converts requests into bytes, and
//! bytes into responses.
//!
//! The first request gets the peer's versions (KIP-511: with version 3, and with version 0 if the
//! peer does not support that); other requests wait for the response. Responses arrive in the order
//! of the requests, so an unexpected correlation id, or a response without a request, ends the
//! connection.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use pykafka_wire::ApiKey;
use pykafka_wire::api_versions;
use pykafka_wire::frame::{RequestHeader, decode_response_header};
use tokio::time::Instant;

use crate::request::{Completion, Pending, SendError, Wanted, expire};

const PREFIX_SIZE: usize = 4;
const READ_BYTES_MIN: usize = 16 << 10;
const READ_BYTES_MAX: usize = 256 << 10;
const API_VERSIONS: i16 = 3;
const UNSUPPORTED_VERSION: i16 = 35;
const SOFTWARE_NAME: &str = "pykafka-core";

/// Correlation id of the next `AlterPartition` request of this process, on any connection. It
/// allows a controller to recognize requests that a broker has repeated after giving up on them.
/// Those ids also increase across reconnections in Apache Kafka's brokers.
static NEXT_ISR_CHANGE: AtomicI32 = AtomicI32::new(0);
const ALTER_PARTITION: ApiKey = ApiKey(56);

/// The reason why a connection must end.
pub(crate) type Broken = Arc<str>;

/// A request that was sent and has no response yet.
#[derive(Debug)]
struct UnderWay {
    correlation_id: i32,
    api_key: ApiKey,
    api_version: i16,
    deadline: Instant,
    response_bytes_expected: usize,
    /// `None` for the request for the peer's versions.
    completion: Option<Completion>,
}

type Versions = HashMap<i16, (i16, i16)>;

/// The state of one connection; see the module documentation.
#[derive(Debug)]
pub(crate) struct Exchange {
    client_id: Arc<str>,
    response_bytes_max: usize,
    /// The last correlation id, except those of `AlterPartition`.
    correlation_id: i32,
    versions: Option<Versions>,
    /// Requests that wait for the versions.
    waiting: VecDeque<Pending>,
    under_way: VecDeque<UnderWay>,
    /// Callers that wait for the end of the connection.
    watching: VecDeque<Pending>,
    input: BytesMut,
    output: BytesMut,
}

impl Exchange {
    /// Starts with the request for versions, whose response must arrive by `deadline`.
    pub(crate) fn begin(
        client_id: Arc<str>,
        response_bytes_max: usize,
        deadline: Instant,
    ) -> Exchange {
        let mut exchange = Exchange {
            client_id,
            response_bytes_max,
            correlation_id: 0,
            versions: None,
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            watching: VecDeque::new(),
            input: BytesMut::new(),
            output: BytesMut::new(),
        };
        exchange.ask_versions(API_VERSIONS, deadline);
        exchange
    }

    /// True if the peer has sent its versions, so that it uses Kafka's protocol.
    pub(crate) fn is_established(&self) -> bool {
        self.versions.is_some()
    }

    /// True without open requests.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty() && self.watching.is_empty()
    }

    /// The buffer for bytes from the peer, with free capacity, and the bytes to send.
    pub(crate) fn buffers(&mut self) -> (&mut BytesMut, &mut BytesMut) {
        let missing = match self.frame_size() {
            Ok(Some(size)) => (PREFIX_SIZE + size).saturating_sub(self.input.len()),
            _ => 0,
        };
        let expected = self.under_way.front().map_or(0, |asked| asked.response_bytes_expected);
        let bytes_max = if missing <= expected { missing } else { READ_BYTES_MAX };
        self.input.reserve(missing.min(bytes_max).max(READ_BYTES_MIN));
        (&mut self.input, &mut self.output)
    }

    /// Sends a request or queues it; fails it immediately if the peer does not support its version.
    pub(crate) fn submit(&mut self, pending: Pending) {
        let Some(versions) = &self.versions else { return self.waiting.push_back(pending) };
        let Wanted::Response { api_key, api_version, ref body, bytes_expected } = pending.wanted
        else {
            return self.watching.push_back(pending);
        };
        let (min, max) = versions.get(&api_key.0).copied().unwrap_or((0, -1));
        if !(min..=max).contains(&api_version) {
            return pending.fail(SendError::UnsupportedVersion { min, max });
        }
        let body = body.clone();
        let Pending { deadline, completion, .. } = pending;
        self.ask(api_key, api_version, &body, deadline, bytes_expected, Some(completion));
    }

    /// Handles the complete frames in the input.
    pub(crate) fn received(&mut self) -> Result<(), Broken> {
        while let Some(size) = self.frame_size()? {
            if self.input.len() < PREFIX_SIZE + size {
                break;
            }
            self.input.advance(PREFIX_SIZE);
            let frame = self.input.split_to(size).freeze();
            self.answered(frame)?;
        }
        Ok(())
    }

    /// The next time at which [`Exchange::expire`] must be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waiting = self.waiting.iter().chain(&self.watching).map(|pending| pending.deadline);
        self.under_way.iter().map(|asked| asked.deadline).chain(waiting).min()
    }

    /// Ends requests whose deadline has passed. If such a request was sent already, the connection
    /// must end.
    pub(crate) fn expire(&mut self, now: Instant) -> Result<(), Broken> {
        expire(&mut self.waiting, now);
        expire(&mut self.watching, now);
        let mut is_broken = false;
        for asked in &mut self.under_way {
            if asked.deadline > now {
                continue;
            }
            is_broken = true;
            if let Some(completion) = asked.completion.take() {
                completion.complete(Err(SendError::TimedOut));
            }
        }
        if is_broken { Err("the peer did not answer in time".into()) } else { Ok(()) }
    }

    /// Ends all requests because the connection has ended.
    pub(crate) fn fail(self, error: &SendError) {
        let under_way = self.under_way.into_iter().filter_map(|asked| asked.completion);
        let waiting = self.waiting.into_iter().chain(self.watching);
        let waiting = waiting.map(|pending| pending.completion);
        under_way.chain(waiting).for_each(|completion| completion.complete(Err(error.clone())));
    }

    fn frame_size(&self) -> Result<Option<usize>, Broken> {
        let Some(prefix) = self.input.first_chunk::<PREFIX_SIZE>() else { return Ok(None) };
        let size = i32::from_be_bytes(*prefix);
        match usize::try_from(size) {
            Ok(bytes @ PREFIX_SIZE..) if bytes <= self.response_bytes_max => Ok(Some(bytes)),
            _ => Err(format!("it sent a response of {size} bytes").into()),
        }
    }

    fn ask_versions(&mut self, version: i16, deadline: Instant) {
        let request = api_versions::Request {
            client_software_name: SOFTWARE_NAME,
            client_software_version: env!("CARGO_PKG_VERSION"),
            ..api_versions::Request::default()
        };
        let mut body = Vec::new();
        request.encode(version, &mut body).expect("both fields may be left out");
        self.ask(ApiKey::API_VERSIONS, version, &body, deadline, 0, None);
    }

    fn ask(
        &mut self,
        api_key: ApiKey,
        api_version: i16,
        body: &[u8],
        deadline: Instant,
        response_bytes_expected: usize,
        completion: Option<Completion>,
    ) {
        let correlation_id = if api_key == ALTER_PARTITION {
            NEXT_ISR_CHANGE.fetch_add(1, Ordering::Relaxed) & i32::MAX
        } else {
            self.correlation_id = self.correlation_id.wrapping_add(1) & i32::MAX;
            self.correlation_id
        };
        let client_id = Some(&*self.client_id);
        let header = RequestHeader { api_key, api_version, correlation_id, client_id };
        let mut head = Vec::new();
        let written = header.encode(&mut head).map_err(|error| error.to_string());
        let size = written.and_then(|()| {
            i32::try_from(head.len() + body.len()).map_err(|_| "it is too large".to_owned())
        });
        match (size, completion) {
            (Ok(size), completion) => {
                self.output.extend_from_slice(&size.to_be_bytes());
                self.output.extend_from_slice(&head);
                self.output.extend_from_slice(body);
                let asked = UnderWay {
                    correlation_id,
                    api_key,
                    api_version,
                    deadline,
                    response_bytes_expected,
                    completion,
                };
                self.under_way.push_back(asked);
            }
            (Err(reason), Some(completion)) => {
                let reason = format!("the request cannot be encoded: {reason}");
                completion.complete(Err(SendError::Disconnected(reason.into())));
            }
            (Err(_), None) => {}
        }
    }

    fn answered(&mut self, mut frame: Bytes) -> Result<(), Broken> {
        let asked = self.under_way.front().ok_or("it sent a response without a request")?;
        let (correlation_id, body) =
            decode_response_header(asked.api_key, asked.api_version, &frame)
                .map_err(|error| format!("it sent no header: {error}"))?;
        if correlation_id != asked.correlation_id {
            return Err("it answered another request".into());
        }
        let head_size = frame.len() - body.len();
        frame.advance(head_size);
        let Some(UnderWay { api_version, deadline, completion, .. }) = self.under_way.pop_front()
        else {
            return Ok(());
        };
        match completion {
            Some(completion) => completion.complete(Ok(frame)),
            None => self.versions_told(api_version, deadline, &frame)?,
        }
        Ok(())
    }

    fn versions_told(&mut self, asked: i16, deadline: Instant, body: &[u8]) -> Result<(), Broken> {
        // Error responses have version 0, whatever version was requested.
        let code = body.first_chunk().map(|code| i16::from_be_bytes(*code));
        if code == Some(UNSUPPORTED_VERSION) && asked > 0 {
            self.ask_versions(0, deadline);
            return Ok(());
        }
        let response = api_versions::Response::decode(asked, body)
            .map_err(|error| format!("its versions cannot be read: {error}"))?;
        if response.error_code != 0 {
            return Err(format!("it rejects ApiVersions with error {}", response.error_code).into());
        }
        let versions =
            response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        self.versions = Some(versions.collect());
        for pending in mem::take(&mut self.waiting) {
            self.submit(pending);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity of the input buffer after the start of a response of 1 MiB, if
    /// `response_bytes_expected` are expected.
    fn room(response_bytes_expected: usize) -> usize {
        let mut exchange = Exchange::begin("test".into(), 1 << 24, Instant::now());
        exchange.under_way.clear();
        let (key, version) = (ApiKey::FETCH, 12);
        exchange.ask(key, version, &[], Instant::now(), response_bytes_expected, None);
        exchange.input.extend_from_slice(&(1_i32 << 20).to_be_bytes());
        let (input, _) = exchange.buffers();
        input.capacity()
    }

    #[test]
    fn an_expected_reply_gets_its_memory_at_once_and_others_as_they_arrive() {
        assert!(room(2 << 20) >= PREFIX_SIZE + (1 << 20));
        assert!(room(1 << 19) < 1 << 19);
    }
}
