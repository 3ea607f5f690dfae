//! Examples of the rules, then a comparison of sessions with a simple model.

use proptest::prelude::*;

use super::*;

const MINUTE_NS: u64 = 60_000_000_000;

fn key(index: i32) -> PartitionKey {
    PartitionKey { topic: TopicKey::Id([7; 16]), index }
}

fn spec(fetch_offset: i64) -> FetchSpec {
    FetchSpec {
        fetch_offset,
        bytes_max: 100,
        current_leader_epoch: None,
        last_fetched_epoch: None,
        log_start_offset: -1,
    }
}

fn quiet(high_watermark: i64) -> FetchedState {
    FetchedState { high_watermark, log_start_offset: 0, has_records: false, must_tell: false }
}

fn session(partitions: i32) -> FetchSession {
    let mut session = FetchSession::new(Owner::Client, true);
    (0..partitions).for_each(|index| session.upsert(key(index), spec(0)));
    session
}

/// contract/kafka.md#27.
#[test]
fn epochs_must_follow_each_other_and_wrap_to_one() {
    let mut session = session(1);
    assert_eq!(session.begin(2, true), Err(KafkaError::InvalidFetchSessionEpoch));
    assert_eq!(session.begin(1, true), Ok(()));
    assert_eq!(session.begin(1, true), Err(KafkaError::InvalidFetchSessionEpoch));
    session.next_epoch = i32::MAX;
    assert_eq!(session.begin(i32::MAX, true), Ok(()));
    assert_eq!(session.begin(1, true), Ok(()));
}

/// contract/kafka.md#27.
#[test]
fn switching_between_names_and_ids_is_rejected() {
    assert_eq!(session(1).begin(1, false), Err(KafkaError::FetchSessionTopicIdError));
}

/// contract/kafka.md#27.
#[test]
fn incremental_replies_contain_only_changed_partitions() {
    let mut session = session(1);
    assert!(session.record(&key(0), quiet(5)), "the first response always includes it");
    assert!(!session.record(&key(0), quiet(5)));
    assert!(session.record(&key(0), quiet(6)));
    assert!(session.record(&key(0), FetchedState { log_start_offset: 2, ..quiet(6) }));
    let error = FetchedState { high_watermark: -1, must_tell: true, ..quiet(6) };
    assert!(session.record(&key(0), error));
    assert!(session.record(&key(0), error));
    assert!(session.record(&key(0), quiet(6)), "the response after an error includes it again");
}

/// contract/kafka.md#27.
#[test]
fn partitions_with_data_move_to_the_back() {
    let mut session = session(3);
    session.record(&key(0), FetchedState { has_records: true, ..quiet(1) });
    let order: Vec<i32> = session.specs().map(|(key, _)| key.index).collect();
    assert_eq!(order, [1, 2, 0]);
    session.upsert(key(2), spec(9));
    let order: Vec<i64> = session.specs().map(|(_, spec)| spec.fetch_offset).collect();
    assert_eq!(order, [0, 9, 0]);
}

/// contract/kafka.md#63.
#[test]
fn a_topic_resolved_once_differs_from_one_never_known() {
    let mut session = session(1);
    assert!(!session.resolve(&key(0), false));
    assert!(session.resolve(&key(0), true));
    assert!(session.resolve(&key(0), false));
}

/// A cache with space for `partitions` partitions.
fn sessions_of(partitions: usize) -> FetchSessions {
    FetchSessions::new(1, Arc::new(Budget::new(partitions * PARTITION_BYTES)))
}

/// Gives a session `count` partitions.
fn resized(sessions: &FetchSessions, id: i32, count: i32) -> Result<(), KafkaError> {
    let shared = sessions.get(id, Owner::Client, 0)?;
    let mut held = shared.lock();
    (0..count).for_each(|index| held.upsert(key(index), spec(0)));
    sessions.resized(id, &mut held)
}

#[test]
fn full_cache_grants_no_session_until_one_can_be_evicted() {
    let sessions = sessions_of(1_000);
    let small = sessions.insert(session(1), 2, 0);
    let large = sessions.insert(session(3), 2, 0);
    assert!(small > 0 && large > 0 && small != large);
    assert_eq!(sessions.insert(session(2), 2, MINUTE_NS), SESSION_NONE);
    // After two minutes, a smaller session is evicted for a larger one although it is in use; one
    // of equal size is not.
    assert!(
        sessions.get(small, Owner::Client, 3 * MINUTE_NS).is_ok()
            && sessions.get(large, Owner::Client, 3 * MINUTE_NS).is_ok()
    );
    assert_eq!(sessions.insert(session(1), 2, 3 * MINUTE_NS), SESSION_NONE);
    assert!(sessions.insert(session(2), 2, 3 * MINUTE_NS) > 0);
    assert_eq!(
        sessions.get(small, Owner::Client, 3 * MINUTE_NS).err(),
        Some(KafkaError::FetchSessionIdNotFound)
    );
    // A session that was unused for two minutes is evicted first, whatever its size.
    assert!(sessions.insert(session(1), 2, 6 * MINUTE_NS) > 0);
    assert_eq!(sessions.counts().0, 2);
}

#[test]
fn sessions_count_their_partitions_against_the_bound() {
    let sessions = sessions_of(1_000);
    let id = sessions.insert(session(3), 10, 0);
    assert_eq!(resized(&sessions, id, 5), Ok(()));
    assert_eq!(sessions.counts(), (1, 5));
    sessions.remove(id, Owner::Client);
    assert_eq!(sessions.counts(), (0, 0));
    assert_eq!(sessions.insert(session(1), 0, 0), SESSION_NONE);
}

#[test]
fn a_session_that_grows_beyond_the_bound_ends_without_effect_on_others() {
    let sessions = sessions_of(10);
    let (first, second) = (sessions.insert(session(4), 10, 0), sessions.insert(session(4), 10, 0));
    assert_eq!(sessions.insert(session(3), 10, 0), SESSION_NONE);
    assert_eq!(resized(&sessions, first, 6), Ok(()));
    assert_eq!(resized(&sessions, second, 5), Err(KafkaError::FetchSessionIdNotFound));
    assert_eq!(
        (sessions.get(second, Owner::Client, 0).is_err(), sessions.counts()),
        (true, (1, 6))
    );
}

fn of_follower(partitions: i32) -> FetchSession {
    FetchSession { owner: Owner::Follower(2), ..session(partitions) }
}

/// For each of `ids`: true if the session exists.
fn alive(sessions: &FetchSessions, ids: &[i32]) -> Vec<bool> {
    let cache = sessions.cache.lock();
    ids.iter().map(|id| cache.slots.contains_key(id)).collect()
}

#[test]
fn a_follower_evicts_a_client_and_a_client_never_evicts_a_follower() {
    let sessions = sessions_of(1_000);
    let small = sessions.insert(session(5), 2, 0);
    let large = sessions.insert(session(9), 2, 0);
    let first = sessions.insert(of_follower(1), 2, 0);
    assert_eq!(alive(&sessions, &[small, large, first]), [false, true, true]);
    let second = sessions.insert(of_follower(1), 2, 0);
    assert_eq!(alive(&sessions, &[large, first, second]), [false, true, true]);
    assert_eq!(sessions.insert(of_follower(7), 2, 0), SESSION_NONE, "both are young");
    // The sessions are in use and old: a larger session of a client gets no slot, one of a follower
    // does.
    for id in [first, second] {
        sessions.get(id, Owner::Follower(2), 3 * MINUTE_NS).unwrap();
    }
    assert_eq!(sessions.insert(session(90), 2, 3 * MINUTE_NS), SESSION_NONE);
    assert!(sessions.insert(of_follower(7), 2, 3 * MINUTE_NS) > 0);
    // As in Kafka, a session that was unused for two minutes is evicted, also a follower's.
    assert!(sessions.insert(session(1), 2, 6 * MINUTE_NS) > 0);
}

#[test]
fn a_follower_evicts_clients_only_if_that_frees_enough_memory() {
    let sessions = sessions_of(20);
    let clients = [2, 9, 4].map(|count| sessions.insert(session(count), 10, 0));
    assert_eq!(sessions.insert(of_follower(21), 10, 0), SESSION_NONE);
    assert_eq!(alive(&sessions, &clients), [true, true, true]);
    let id = sessions.insert(of_follower(12), 10, 0);
    assert!(id > 0);
    assert_eq!(alive(&sessions, &clients), [true, false, true]);
    let shared = sessions.get(id, Owner::Follower(2), 0).unwrap();
    let mut held = shared.lock();
    (0..17).for_each(|index| held.upsert(key(index), spec(0)));
    assert_eq!(sessions.resized(id, &mut held), Ok(()));
    assert_eq!(alive(&sessions, &clients), [true, false, false]);
    (0..21).for_each(|index| held.upsert(key(index), spec(0)));
    assert!(sessions.resized(id, &mut held).is_err());
    assert_eq!(alive(&sessions, &[clients[0], id]), [true, false]);
}

#[test]
fn a_session_is_usable_only_by_its_owner() {
    let sessions = sessions_of(20);
    let (of_client, id) =
        (sessions.insert(session(1), 9, 0), sessions.insert(of_follower(1), 9, 0));
    for (id, stranger) in
        [(of_client, Owner::Follower(2)), (id, Owner::Client), (id, Owner::Follower(3))]
    {
        assert_eq!(sessions.get(id, stranger, 0).err(), Some(KafkaError::FetchSessionIdNotFound));
        sessions.remove(id, stranger);
    }
    assert_eq!(alive(&sessions, &[of_client, id]), [true, true]);
    sessions.remove(id, Owner::Follower(2));
    assert_eq!(alive(&sessions, &[of_client, id]), [true, false]);
}

#[derive(Debug, Clone)]
enum Step {
    Upsert(i32, i64),
    Forget(i32),
    Response { index: i32, high_watermark: i64, has_records: bool, must_tell: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..6_i32, 0..9_i64).prop_map(|(index, offset)| Step::Upsert(index, offset)),
        (0..6_i32).prop_map(Step::Forget),
        (0..6_i32, 0..3_i64, any::<bool>(), any::<bool>()).prop_map(
            |(index, high_watermark, has_records, must_tell)| Step::Response {
                index,
                high_watermark,
                has_records,
                must_tell
            }
        ),
    ]
}

/// The session as a list in the order of service: (partition, offset, high watermark in the last
/// response).
#[derive(Default)]
struct Model(Vec<(i32, i64, Option<i64>)>);

impl Model {
    fn apply(&mut self, step: &Step) -> Option<bool> {
        let at = |list: &[(i32, i64, Option<i64>)], wanted: i32| {
            list.iter().position(|(index, ..)| *index == wanted)
        };
        match *step {
            Step::Upsert(index, offset) => match at(&self.0, index) {
                Some(at) => self.0[at].1 = offset,
                None => self.0.push((index, offset, None)),
            },
            Step::Forget(index) => self.0.retain(|(other, ..)| *other != index),
            Step::Response { index, high_watermark, has_records, must_tell } => {
                let Some(at) = at(&self.0, index) else { return Some(true) };
                let told = self.0[at].2 == Some(high_watermark);
                self.0[at].2 = (!must_tell).then_some(high_watermark);
                if has_records {
                    let entry = self.0.remove(at);
                    self.0.push(entry);
                }
                return Some(!told || has_records || must_tell);
            }
        }
        None
    }
}

proptest! {
    #[test]
    fn session_agrees_with_a_plain_list(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut session, mut model) = (FetchSession::new(Owner::Client, true), Model::default());
        for step in steps {
            let expected = model.apply(&step);
            let told = match step {
                Step::Upsert(index, offset) => { session.upsert(key(index), spec(offset)); None }
                Step::Forget(index) => { session.forget(&key(index)); None }
                Step::Response { index, high_watermark, has_records, must_tell } => Some(
                    session.record(
                        &key(index),
                        FetchedState { high_watermark, log_start_offset: 0, has_records, must_tell },
                    ),
                ),
            };
            prop_assert_eq!(told, expected);
            let served: Vec<(i32, i64)> =
                session.specs().map(|(key, spec)| (key.index, spec.fetch_offset)).collect();
            let listed: Vec<(i32, i64)> =
                model.0.iter().map(|(index, offset, _)| (*index, *offset)).collect();
            prop_assert_eq!(served, listed);
            prop_assert_eq!(session.count(), session.places.len());
        }
    }
}
