//! A client as Kafka's are: it has several batches under way, sends what was refused again in order, and begins its next
//! epoch when it is told that it is out of order.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

/// `max.in.flight.requests.per.connection` of idempotent producers.
const UNDER_WAY_MAX: usize = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A batch is sent; `refused` where too few replicas are in sync.
    Send { refused: bool },
    /// The oldest answer is read.
    Read,
    /// The connection ends: nobody knows what became of what is under way.
    Disconnect,
    /// Of what is to be sent again, the first is given up.
    GiveUp,
}

fn steps(gives_up: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<bool>().prop_map(|refused| Step::Send { refused }),
        6 => Just(Step::Read),
        1 => Just(Step::Disconnect),
        u32::from(gives_up) => Just(Step::GiveUp),
    ];
    prop::collection::vec(step, 1..120)
}

/// A batch of one record, by its place among those of the application.
#[derive(Debug, Clone, Copy)]
struct Sending {
    place: usize,
    sequence: i32,
    /// How often it was sent since nothing is refused any more.
    tries: u32,
}

struct Client {
    broker: Broker,
    epoch: i16,
    next_sequence: i32,
    next_place: usize,
    /// In the order in which they were sent, with the error that each is answered with.
    under_way: VecDeque<(Sending, Option<KafkaError>)>,
    /// What is to be sent again, by place.
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
            under_way: VecDeque::new(),
            again: BTreeMap::new(),
            gave_up: false,
            log: Vec::new(),
            tries_max: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Send { refused } => self.send_next(refused),
            Step::Read => self.read(),
            Step::Disconnect => {
                let under_way = self.under_way.drain(..);
                self.again.extend(under_way.map(|(sending, _)| (sending.place, sending)));
            }
            Step::GiveUp => self.gave_up |= self.again.pop_first().is_some(),
        }
    }

    fn send_next(&mut self, refused: bool) {
        let unanswered = self.under_way.len() + self.again.len();
        if let Some((_, sending)) = self.again.pop_first() {
            self.send(sending, refused);
        } else if unanswered < UNDER_WAY_MAX {
            let (place, sequence) = (self.next_place, self.take_sequence());
            self.next_place += 1;
            self.send(Sending { place, sequence, tries: 0 }, refused);
        }
    }

    fn take_sequence(&mut self) -> i32 {
        let next = self.next_sequence.wrapping_add(1) & i32::MAX;
        std::mem::replace(&mut self.next_sequence, next)
    }

    fn send(&mut self, sending: Sending, refused: bool) {
        let batch = in_epoch(self.epoch, sending.sequence);
        let end = self.broker.offsets().log_end_offset;
        let error = told(self.broker.produce(9, if refused { -1 } else { 1 }, &batch));
        if self.broker.offsets().log_end_offset > end {
            self.log.push(sending.place);
        }
        self.tries_max = self.tries_max.max(sending.tries);
        self.under_way.push_back((sending, error));
    }

    fn read(&mut self) {
        let Some((sending, error)) = self.under_way.pop_front() else { return };
        let Some(error) = error else { return };
        self.again.insert(sending.place, sending);
        match error {
            KafkaError::NotEnoughReplicas => {}
            KafkaError::OutOfOrderSequenceNumber if self.gave_up => self.begin_epoch(),
            error => panic!("batch {} was told {error}", sending.place),
        }
    }

    /// What is under way is answered first.
    fn begin_epoch(&mut self) {
        for (sending, error) in std::mem::take(&mut self.under_way) {
            if error.is_some() {
                self.again.insert(sending.place, sending);
            }
        }
        (self.epoch, self.next_sequence, self.gave_up) = (self.epoch + 1, 0, false);
        for (place, sending) in std::mem::take(&mut self.again) {
            let sequence = self.take_sequence();
            self.again.insert(place, Sending { sequence, ..sending });
        }
    }

    /// Sends what is left, now that nothing is refused; returns how often one had to be sent at most.
    fn finish(&mut self) -> u32 {
        loop {
            while !self.under_way.is_empty() {
                self.read();
            }
            if self.again.is_empty() {
                return self.tries_max;
            }
            for sending in std::mem::take(&mut self.again).into_values() {
                self.send(Sending { tries: sending.tries + 1, ..sending }, false);
            }
        }
    }
}

/// The client of one history, at its end, and how often a batch had to be sent then.
fn history(first_sequence: i32, steps: Vec<Step>) -> (Client, u32) {
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
    #[test]
    fn batches_that_come_again_are_appended_once_in_order_and_in_their_epoch(
        first_sequence in first_sequence(),
        steps in steps(false),
    ) {
        let (client, tries) = history(first_sequence, steps);
        prop_assert_eq!(client.log, (0..client.next_place).collect::<Vec<_>>());
        prop_assert_eq!(client.epoch, 0);
        prop_assert!(tries <= 1, "one was sent {} times", tries);
    }

    /// It is told that a batch is out of order the second time it sends it, then begins an epoch.
    #[test]
    fn a_client_that_gives_up_batches_writes_nothing_twice_and_gets_on_soon(
        first_sequence in first_sequence(),
        steps in steps(true),
    ) {
        let (client, tries) = history(first_sequence, steps);
        prop_assert!(client.log.is_sorted_by(|one, next| one < next), "{:?}", client.log);
        prop_assert!(tries <= 3, "one was sent {} times", tries);
    }
}
