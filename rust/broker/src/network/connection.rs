//! One task per connection: it reads requests, handles them and responds, in order.
//!
//! Requests start in the order of arrival, and their responses are sent in that order (`pipeline`).
//! Whole frames in the input buffer are handled one after the other without another read, and their
//! responses are sent with one write. There is no other batching; pipelined requests benefit from
//! it without a switch between threads.
//!
//! While a response is pending (a long poll, a produce request that waits for its replicas, or a
//! request that Python handles), the connection is muted: only produce requests start, and only
//! after other produce requests. A muted connection reads ahead only to detect that the peer
//! disconnected, at most [`READ_AHEAD_BYTES_MAX`]; dropping the pending responses cancels them.
//!
//! A peer that has closed its sending side still gets the responses to all its requests, as from
//! Kafka; only then is the connection closed. A peer that has closed both sides looks the same
//! until something is written to it, so its pending requests continue until they have a response or
//! the connection is idle for too long. A reset cancels them at once.
//!
//! Deadlines: an idle connection is closed after `connections.max.idle.ms`, whether or not a
//! response is pending; the rest of a frame must arrive at a minimum rate; and a peer must receive
//! its responses at a minimum rate (`sending`).

mod arrivals;
mod headers;
mod link;
mod pipeline;
mod reader;
mod sending;

use std::io;
use std::sync::Arc;

use pykafka_log::perturb::hand_over;
use pykafka_wire::ApiKey;
use tokio::time::sleep;

use self::headers::Headers;
use self::link::{Ended, Link};
use self::pipeline::Pipeline;
use self::reader::{Intake, READ_AHEAD_BYTES_MAX, Reader};
use self::sending::Sending;
use crate::hot_apis::hot_index;
use crate::network::connections::Closing;
use crate::network::input::{Input, PREFIX_SIZE};
use crate::network::outcome::Outcome;
use crate::network::output::Output;
use crate::network::response_memory::Unsent;
use crate::network::time_slice::{SLICE_BYTES_MAX, TimeSlice, in_slices};
use crate::network::transport::Transport;
use crate::network::{Handler, Network};
use crate::request::{ConnectionInfo, Header};

/// Gathered responses are written at this size at the latest.
const GATHERED_BYTES_MAX: usize = 256 << 10;

/// Serves the peer of `transport` until either side ends the connection.
pub(crate) async fn run<T: Transport>(
    network: Arc<Network>,
    handler: Arc<dyn Handler>,
    transport: T,
    info: ConnectionInfo,
    closing: Arc<Closing>,
) {
    let mut connection = Connection::new(network, handler, transport, info, closing);
    let slice = connection.link.slice.clone();
    let ended = in_slices(&slice, connection.serve_to_its_end()).await;
    connection.link.report(ended);
}

/// The output of a task that only ends with an error.
enum Never {}

struct Connection<T> {
    link: Link<T>,
    reader: Reader,
    pipeline: Pipeline,
    output: Output,
    headers: Headers,
    handler: Arc<dyn Handler>,
}

impl<T: Transport> Connection<T> {
    fn new(
        network: Arc<Network>,
        handler: Arc<dyn Handler>,
        transport: T,
        info: ConnectionInfo,
        closing: Arc<Closing>,
    ) -> Connection<T> {
        let input = Input::new(network.memory.input.share());
        Connection {
            link: Link { transport, info, closing, network, slice: Arc::new(TimeSlice::default()) },
            reader: Reader::new(input),
            pipeline: Pipeline::default(),
            output: Output::default(),
            headers: Headers::new(),
            handler,
        }
    }

    async fn serve_to_its_end(&mut self) -> Ended {
        let Err(ended) = self.serve().await;
        match ended {
            Ended::Refused(_) => match self.respond_to_begun().await {
                Ok(()) => ended,
                Err(other) => other,
            },
            ended => ended,
        }
    }

    async fn serve(&mut self) -> Result<Never, Ended> {
        self.link.wait_serving().await?;
        loop {
            hand_over();
            self.handle_buffered().await?;
            hand_over();
            self.flush().await?;
            self.reader.input.settle();
            self.link.check_closing(&self.pipeline)?;
            self.give_way().await?;
            self.wait().await?;
        }
    }

    /// Starts the requests in the input, as far as they may start, and gathers the responses that
    /// are ready.
    async fn handle_buffered(&mut self) -> Result<(), Ended> {
        let size_max = self.link.network.settings.load().socket_request_bytes_max;
        loop {
            self.gather().await?;
            if self.output.size() >= GATHERED_BYTES_MAX {
                self.flush().await?;
            }
            self.give_way().await?;
            if self.link.closing.is_draining() || !self.may_begin() {
                return Ok(());
            }
            let frame = self.reader.input.next_frame(size_max);
            let frame = frame.map_err(|error| Ended::Refused(error.to_string()))?;
            let Some(frame) = frame else { return Ok(()) };
            let bytes = frame.len();
            let received = self.reader.frame_taken(PREFIX_SIZE + bytes);
            self.link.slice.handled(self.link.network.clock.now_ns());
            let (header, body) = self
                .headers
                .split(frame, received)
                .map_err(|error| Ended::Refused(format!("malformed request header: {error}")))?;
            let outcome = self.handler.handle(&self.link.info, &header, body);
            self.begun(header, outcome, bytes)?;
        }
    }

    /// True if the next request in the input may start. Until its API key has arrived, this
    /// requires an empty pipeline.
    fn may_begin(&self) -> bool {
        if self.link.muted().is_some() {
            return false;
        }
        match self.reader.input.next_api_key() {
            Some(api_key) => {
                self.pipeline.accepts(api_key) && !self.reader.input.is_full(self.pipeline.bytes())
            }
            None => self.pipeline.is_empty(),
        }
    }

    /// Appends a request that has started to the pipeline, or its response to the output.
    fn begun(&mut self, header: Header, outcome: Outcome, bytes: usize) -> Result<(), Ended> {
        match outcome {
            Outcome::Close(reason) => Err(Ended::Refused(reason)),
            Outcome::NoReply => Ok(()),
            Outcome::Reply(reply) if self.pipeline.is_empty() => {
                self.output.push(&header, reply);
                Ok(())
            }
            outcome => {
                // Requests of other APIs are decoded already.
                let holds_frame = match outcome {
                    Outcome::Parked(..) => true,
                    Outcome::Pending(_) | Outcome::Held(_) => {
                        header.api_key == ApiKey::PRODUCE || hot_index(header.api_key).is_none()
                    }
                    Outcome::Reply(_) | Outcome::NoReply | Outcome::Close(_) => false,
                };
                let held = self.pipeline.bytes();
                let share = if holds_frame { self.reader.input.lend(bytes, held) } else { None };
                self.pipeline.push(header, outcome, bytes, share);
                Ok(())
            }
        }
    }

    /// Moves the decided responses into the output, in the order of the requests.
    async fn gather(&mut self) -> Result<(), Ended> {
        while let Some((header, outcome)) = self.pipeline.take_decided().await {
            match outcome {
                Outcome::Reply(reply) => self.output.push(&header, reply),
                Outcome::Close(reason) => {
                    self.pipeline.clear();
                    return Err(Ended::Refused(reason));
                }
                Outcome::NoReply | Outcome::Pending(_) | Outcome::Parked(..) | Outcome::Held(_) => {
                }
            }
        }
        Ok(())
    }

    /// Lets other connections run if this one has used up its slice; sends its responses first.
    async fn give_way(&mut self) -> Result<(), Ended> {
        if self.link.slice.is_over(self.link.network.clock.now_ns()) {
            self.flush().await?;
            self.link.slice.give_away().await;
        }
        Ok(())
    }

    /// Waits for a response, or for the peer.
    async fn wait(&mut self) -> Result<(), Ended> {
        let intake = self.intake()?;
        let muted = self.link.muted();
        tokio::select! {
            biased;
            () = self.pipeline.decided() => Ok(()),
            () = sleep(muted.unwrap_or_default()), if muted.is_some() => Ok(()),
            read = self.reader.read_on(&self.link, intake, &mut self.output) => read,
        }
    }

    fn intake(&self) -> Result<Intake, Ended> {
        let is_muted = self.link.muted().is_some() && !self.reader.input.is_empty();
        let nothing_comes = self.reader.has_finished();
        if self.link.closing.is_draining() || (nothing_comes && !is_muted) {
            return if self.pipeline.is_empty() { Err(Ended::Peer) } else { Ok(Intake::Nothing) };
        }
        Ok(match self.reader.input.size() {
            _ if self.may_begin() => Intake::Frame,
            size if size < READ_AHEAD_BYTES_MAX && !nothing_comes => Intake::Ahead,
            _ => Intake::Nothing,
        })
    }

    /// Sends the responses to all requests that have started.
    async fn respond_to_begun(&mut self) -> Result<(), Ended> {
        loop {
            self.gather().await?;
            self.flush().await?;
            if self.pipeline.is_empty() {
                return Ok(());
            }
            self.link.check_closing(&self.pipeline)?;
            tokio::select! {
                biased;
                () = self.pipeline.decided() => {}
                read = self.reader.read_on(&self.link, Intake::Nothing, &mut self.output) => read?,
            }
        }
    }

    /// Sends all gathered responses.
    async fn flush(&mut self) -> Result<(), Ended> {
        let Link { transport, network, slice, closing, info } = &self.link;
        let size = self.output.size();
        let (mut unsent, mut sending): (Option<Unsent<'_>>, _) = (None, None);
        while self.output.size() > 0 {
            let before = self.output.size();
            let sent = self.output.send(transport, SLICE_BYTES_MAX);
            slice.moved(before - self.output.size());
            let (bytes, now_ns) = (self.output.memory_size(), network.clock.now_ns());
            if self.output.size() < before {
                info.standing.used(now_ns);
            }
            match &unsent {
                Some(unsent) if self.output.size() < before => unsent.taken(now_ns),
                None if bytes > 0 => {
                    let held_bytes = self.output.cover(&network.memory.responses);
                    unsent = Some(network.memory.responses.watch(held_bytes, closing, now_ns));
                }
                Some(_) | None => {}
            }
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let sending = sending.get_or_insert_with(|| Sending::new(now_ns, size, bytes));
                    self.link.wait_writable(sending).await?;
                }
                Err(error) => return Err(Ended::of_sending(&error)),
            }
            // A wait that ended at once did not end the slice.
            if self.output.size() > 0 && slice.is_over(network.clock.now_ns()) {
                slice.give_away().await;
            }
        }
        network.statistics.bytes_sent.add(size as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
