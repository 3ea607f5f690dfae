use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::network::memory::Memory;

const MIB: usize = 1 << 20;

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn budget(bytes_max: usize) -> Arc<Budget> {
    Arc::new(Budget::new(bytes_max))
}

#[test]
fn frames_that_wait_for_each_other_go_on_one_after_the_other() {
    let budget = budget(8 * MIB);
    let mut shares = [budget.share(), budget.share(), budget.share()];
    for share in &mut shares {
        assert!(share.try_grow(Lane::Large, 2 * MIB));
    }
    let [mut first, mut second, mut third] = shares;
    assert!(first.try_grow(Lane::Large, 20 * MIB), "one goes beyond the bound");
    assert!(first.try_grow(Lane::Large, 20 * MIB), "to the end of its frame");
    let (mut second_grows, mut third_grows) =
        (Box::pin(second.grow(Lane::Large, 20 * MIB)), Box::pin(third.grow(Lane::Large, 20 * MIB)));
    assert!(poll(second_grows.as_mut()).is_pending() && poll(third_grows.as_mut()).is_pending());
    assert_eq!((budget.held(), budget.waiting()), (46 * MIB, 2));
    drop(first);
    assert!(poll(third_grows.as_mut()).is_pending(), "they go in the order in which they came");
    assert!(poll(second_grows.as_mut()).is_ready());
    drop(second_grows);
    drop(second);
    assert!(poll(third_grows.as_mut()).is_ready());
    drop(third_grows);
    drop(third);
    assert_eq!((budget.held(), budget.waiting()), (0, 0));
}

#[test]
fn ordinary_frames_have_room_beside_large_ones() {
    let budget = budget(8 * MIB);
    let (mut held, mut beyond) = (budget.share(), budget.share());
    assert!(held.try_grow(Lane::Large, 6 * MIB));
    assert!(!budget.share().try_spare(1));
    assert!(beyond.try_grow(Lane::Large, MIB));
    assert!(!budget.share().try_grow(Lane::Large, 1));
    let mut ordinary = budget.share();
    assert!(ordinary.try_grow(Lane::of(MIB), MIB));
    assert!(ordinary.overdrawn.is_none() && beyond.overdrawn == Some(Lane::Large));
}

#[test]
fn who_leaves_the_line_takes_nothing_along() {
    let budget = budget(8 * MIB);
    let (mut held, mut beyond) = (budget.share(), budget.share());
    assert!(held.try_grow(Lane::Large, 6 * MIB) && beyond.try_grow(Lane::Large, MIB));
    let (mut leaves, mut granted, mut stays) = (budget.share(), budget.share(), budget.share());
    let mut leaving = Box::pin(leaves.grow(Lane::Large, MIB));
    let mut unread = Box::pin(granted.grow(Lane::Large, MIB));
    let mut staying = pin!(stays.grow(Lane::Large, MIB));
    assert!(poll(leaving.as_mut()).is_pending());
    assert!(poll(unread.as_mut()).is_pending());
    assert!(poll(staying.as_mut()).is_pending());
    drop(leaving);
    assert_eq!(budget.waiting(), 2);
    drop(held);
    // Granted, and gone before it knew.
    drop(unread);
    assert!(poll(staying).is_ready());
    drop((beyond, leaves, granted));
    assert_eq!((budget.held(), budget.waiting()), (MIB, 0));
    assert!(budget.state.lock().lines.iter().all(|line| !line.overdrawn));
}

#[test]
fn larger_bound_serves_those_who_wait() {
    let memory = Memory::new(16 * MIB as u64);
    memory.set_queued_bytes_max(MIB as i64);
    let (mut held, mut beyond) = (memory.input.share(), memory.input.share());
    assert!(held.try_grow(Lane::Large, MIB / 2) && beyond.try_grow(Lane::Large, MIB));
    let mut share = memory.input.share();
    let mut grows = pin!(share.grow(Lane::Large, MIB));
    assert!(poll(grows.as_mut()).is_pending());
    memory.set_queued_bytes_max(-1);
    assert!(poll(grows).is_ready());
}
