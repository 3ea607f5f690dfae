//! A client like Kafka's: it has several batches in flight, resends rejected ones in order, and
//! starts its next epoch after an out-of-order error. Batches that it has sent on a connection that
//! ends may be handled later, mixed with those of the next connection.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// `max.in.flight.requests.per.connection` of idempotent producers.
const UNDER_WAY_MAX: usize = 5;

#[derive(Debug, Clone)]
enum Step {
    /// The client sends a batch.
    Send,
    /// The broker handles the next batch of the connection; `refused` if too few replicas are in
    /// sync.
    Handle { refused: bool },
    /// The broker handles the next batch of a connection that has ended.
    HandleLate { connection: Index, refused: bool },
    /// The client reads the oldest response.
    Read,
    /// The connection ends; the outcomes of batches in flight are unknown.
    Disconnect,
    /// The client abandons the first of the batches that it would resend.
    GiveUp,
}

/// A client that abandons batches resends batches without a response in its next epoch, and cannot
/// know whether they were appended before. So with abandoned batches nothing is handled late,
/// nothing is abandoned while an outcome is unknown, and no outcome becomes unknown afterwards.
fn steps(gives_up: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Send),
        6 => any::<bool>().prop_map(|refused| Step::Handle { refused }),
        2 * u32::from(!gives_up) => any::<(Index, bool)>()
            .prop_map(|(connection, refused)| Step::HandleLate { connection, refused }),
        6 => Just(Step::Read),
        1 => Just(Step::Disconnect),
        u32::from(gives_up) => Just(Step::GiveUp),
    ];
    prop::collection::vec(step, 1..200)
}

/// A batch of one record, identified by its place among the application's records.
#[derive(Debug, Clone, Copy)]
struct Sending {
    place: usize,
    epoch: i16,
    sequence: i32,
    /// It was in flight when a connection ended.
    is_unknown: bool,
    /// Number of times that it was sent since batches are not rejected any more.
    tries: u32,
}

/// A connection, and the batches that were sent on it and are not handled.
#[derive(Debug)]
struct Connection {
    id: u64,
    unhandled: VecDeque<Sending>,
}

impl Connection {
    fn new(id: u64) -> Connection {
        Connection { id, unhandled: VecDeque::new() }
    }
}

struct Client {
    broker: Broker,
    epoch: i16,
    next_sequence: i32,
    next_place: usize,
    connection: Connection,
    /// Connections that have ended.
    ended: Vec<Connection>,
    /// Batches of the connection that were handled, with the errors in their responses.
    answered: VecDeque<(Sending, Option<KafkaError>)>,
    /// Batches to resend, by place.
    again: BTreeMap<usize, Sending>,
    gave_up: bool,
    /// Places in the order of the log.
    log: Vec<usize>,
    tries_max: u32,
}

impl Client {
    fn new(first_sequence: i32) -> Client {
        Client {
            broker: with_too_few(),
            epoch: 0,
            next_sequence: first_sequence,
            next_place: 0,
            connection: Connection::new(1),
            ended: Vec::new(),
            answered: VecDeque::new(),
            again: BTreeMap::new(),
            gave_up: false,
            log: Vec::new(),
            tries_max: 0,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Send => self.send_next(),
            Step::Handle { refused } => self.handle(refused),
            Step::HandleLate { .. } if self.ended.is_empty() => {}
            Step::HandleLate { ref connection, refused } => {
                let place = connection.index(self.ended.len());
                self.handle_late(place, refused);
            }
            Step::Read => self.read(),
            Step::Disconnect if self.gave_up => {}
            Step::Disconnect => self.disconnect(),
            Step::GiveUp if self.is_unknown() => {}
            Step::GiveUp => self.gave_up |= self.again.pop_first().is_some(),
        }
    }

    /// True if the outcome of a batch is unknown.
    fn is_unknown(&self) -> bool {
        let answered = self.answered.iter().map(|(sending, _)| sending);
        let sent = answered.chain(&self.connection.unhandled).chain(self.again.values());
        sent.into_iter().any(|sending| sending.is_unknown)
    }

    fn under_way(&self) -> usize {
        self.answered.len() + self.connection.unhandled.len()
    }

    fn send_next(&mut self) {
        if self.under_way() + self.again.len() > UNDER_WAY_MAX {
            return;
        }
        if let Some((_, sending)) = self.again.pop_first() {
            self.connection.unhandled.push_back(sending);
        } else if self.under_way() < UNDER_WAY_MAX {
            let (place, sequence) = (self.next_place, self.take_sequence());
            self.next_place += 1;
            let sending =
                Sending { place, epoch: self.epoch, sequence, is_unknown: false, tries: 0 };
            self.connection.unhandled.push_back(sending);
        }
    }

    fn take_sequence(&mut self) -> i32 {
        let next = self.next_sequence.wrapping_add(1) & i32::MAX;
        std::mem::replace(&mut self.next_sequence, next)
    }

    fn disconnect(&mut self) {
        let next = Connection::new(self.connection.id + 1);
        let ended = std::mem::replace(&mut self.connection, next);
        let answered = self.answered.drain(..).map(|(sending, _)| sending);
        let under_way = answered.chain(ended.unhandled.iter().copied());
        let unknown = |sending| Sending { is_unknown: true, ..sending };
        self.again.extend(under_way.map(|sending| (sending.place, unknown(sending))));
        self.ended.push(ended);
    }

    fn handle(&mut self, refused: bool) {
        if let Some(sending) = self.connection.unhandled.pop_front() {
            let error = self.produce(self.connection.id, sending, refused);
            self.tries_max = self.tries_max.max(sending.tries);
            self.answered.push_back((sending, error));
        }
    }

    /// The broker handles a late batch; its response is not read.
    fn handle_late(&mut self, place: usize, refused: bool) {
        let Connection { id, unhandled } = &mut self.ended[place];
        let id = *id;
        match unhandled.pop_front() {
            Some(sending) => {
                self.produce(id, sending, refused);
            }
            None => {
                self.ended.remove(place);
            }
        }
    }

    fn produce(&mut self, id: u64, sending: Sending, refused: bool) -> Option<KafkaError> {
        let batch = in_epoch(sending.epoch, sending.sequence);
        let end = self.broker.offsets().log_end_offset;
        let acks = if refused { -1 } else { 1 };
        let error = told(self.broker.produce_on(id, 9, acks, &batch));
        if self.broker.offsets().log_end_offset > end {
            self.log.push(sending.place);
        }
        error
    }

    fn read(&mut self) {
        let Some((sending, error)) = self.answered.pop_front() else { return };
        let Some(error) = error else { return };
        self.again.insert(sending.place, sending);
        match error {
            KafkaError::NotEnoughReplicas => {}
            KafkaError::OutOfOrderSequenceNumber if self.gave_up => self.begin_epoch(),
            error => panic!("batch {} was told {error}", sending.place),
        }
    }

    /// Starts the next epoch; batches in flight get their responses first.
    fn begin_epoch(&mut self) {
        while !self.connection.unhandled.is_empty() {
            self.handle(false);
        }
        for (sending, error) in std::mem::take(&mut self.answered) {
            if error.is_some() {
                self.again.insert(sending.place, sending);
            }
        }
        (self.epoch, self.next_sequence, self.gave_up) = (self.epoch + 1, 0, false);
        for (place, sending) in std::mem::take(&mut self.again) {
            let sequence = self.take_sequence();
            self.again.insert(place, Sending { sequence, epoch: self.epoch, ..sending });
        }
    }

    /// Sends the remaining batches, which are not rejected any more. Returns the maximum number of
    /// attempts for a batch.
    fn finish(&mut self) -> u32 {
        loop {
            while self.under_way() > 0 {
                self.handle(false);
                self.read();
            }
            if self.again.is_empty() {
                return self.tries_max;
            }
            for sending in std::mem::take(&mut self.again).into_values() {
                let sending = Sending { tries: sending.tries + 1, ..sending };
                self.connection.unhandled.push_back(sending);
            }
        }
    }
}

/// Runs a history. Returns its client, and the maximum number of attempts at its end.
fn history(first_sequence: i32, steps: &[Step]) -> (Client, u32) {
    let mut client = Client::new(first_sequence);
    for step in steps {
        client.take(step);
    }
    let tries = client.finish();
    (client, tries)
}

fn first_sequence() -> impl Strategy<Value = i32> {
    prop_oneof![Just(0), i32::MAX - 20..=i32::MAX]
}

proptest! {
    /// A batch that was rejected on an ended connection, and appended from the next one, delays
    /// later batches once.
    #[test]
    fn retried_batches_are_appended_once_in_order_and_in_their_epoch(
        first_sequence in first_sequence(),
        steps in steps(false),
    ) {
        let (client, tries) = history(first_sequence, &steps);
        prop_assert_eq!(client.log, (0..client.next_place).collect::<Vec<_>>());
        prop_assert_eq!(client.epoch, 0);
        prop_assert!(tries <= 2, "one was sent {} times", tries);
    }

    /// The client gets an out-of-order error at its second attempt, and then starts an epoch.
    #[test]
    fn a_client_that_abandons_batches_writes_no_duplicates_and_continues_soon(
        first_sequence in first_sequence(),
        steps in steps(true),
    ) {
        let (client, tries) = history(first_sequence, &steps);
        prop_assert!(client.log.is_sorted_by(|one, next| one < next), "{:?}", client.log);
        prop_assert!(tries <= 3, "one was sent {} times", tries);
    }
}
