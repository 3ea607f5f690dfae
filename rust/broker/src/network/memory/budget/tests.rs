use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;
use crate::control_api::settings::Settings;
use crate::network::memory::Memory;

const MIB: usize = 1 << 20;

fn poll<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn budget(bytes_max: usize) -> Arc<Budget> {
    Arc::new(Budget::new(bytes_max))
}

#[test]
fn frames_that_wait_for_memory_continue_one_after_the_other() {
    let budget = budget(8 * MIB);
    let mut shares = [budget.share(), budget.share(), budget.share()];
    for share in &mut shares {
        assert!(share.try_grow(BudgetClass::Large, 2 * MIB));
    }
    let [mut first, mut second, mut third] = shares;
    assert!(first.try_grow(BudgetClass::Large, 20 * MIB), "one goes beyond the bound");
    assert!(first.try_grow(BudgetClass::Large, 20 * MIB), "to the end of its frame");
    let (mut second_grows, mut third_grows) = (
        Box::pin(second.grow(BudgetClass::Large, 20 * MIB)),
        Box::pin(third.grow(BudgetClass::Large, 20 * MIB)),
    );
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
fn ordinary_frames_have_memory_apart_from_large_ones() {
    let budget = budget(8 * MIB);
    let (mut held, mut beyond) = (budget.share(), budget.share());
    assert!(held.try_grow(BudgetClass::Large, 6 * MIB));
    assert!(!budget.share().try_spare(1));
    assert!(beyond.try_grow(BudgetClass::Large, MIB));
    assert!(!budget.share().try_grow(BudgetClass::Large, 1));
    let mut ordinary = budget.share();
    assert!(ordinary.try_grow(BudgetClass::of(MIB), MIB));
    assert!(ordinary.overdrawn.is_none() && beyond.overdrawn == Some(BudgetClass::Large));
}

#[test]
fn a_cancelled_wait_holds_no_memory() {
    let budget = budget(8 * MIB);
    let (mut held, mut beyond) = (budget.share(), budget.share());
    assert!(held.try_grow(BudgetClass::Large, 6 * MIB) && beyond.try_grow(BudgetClass::Large, MIB));
    let (mut leaves, mut granted, mut stays) = (budget.share(), budget.share(), budget.share());
    let mut leaving = Box::pin(leaves.grow(BudgetClass::Large, MIB));
    let mut unread = Box::pin(granted.grow(BudgetClass::Large, MIB));
    let mut staying = pin!(stays.grow(BudgetClass::Large, MIB));
    assert!(poll(leaving.as_mut()).is_pending());
    assert!(poll(unread.as_mut()).is_pending());
    assert!(poll(staying.as_mut()).is_pending());
    drop(leaving);
    assert_eq!(budget.waiting(), 2);
    drop(held);
    // Granted, and dropped before the task noticed.
    drop(unread);
    assert!(poll(staying).is_ready());
    drop((beyond, leaves, granted));
    assert_eq!((budget.held(), budget.waiting()), (MIB, 0));
    assert!(budget.state.lock().lines.iter().all(|line| !line.overdrawn));
}

#[test]
fn larger_bound_completes_waiting_frames() {
    let memory = Memory::new(16 * MIB as u64);
    let queued = |bytes| Settings { queued_request_bytes_max: bytes, ..Settings::default() };
    memory.set(&queued(MIB as i64));
    let (mut held, mut beyond) = (memory.input.share(), memory.input.share());
    assert!(held.try_grow(BudgetClass::Large, MIB / 2) && beyond.try_grow(BudgetClass::Large, MIB));
    let mut share = memory.input.share();
    let mut grows = pin!(share.grow(BudgetClass::Large, MIB));
    assert!(poll(grows.as_mut()).is_pending());
    memory.set(&queued(-1));
    assert!(poll(grows).is_ready());
}

const BOUND: usize = 16;
const TAKERS: usize = 6;
const CLASSES: [BudgetClass; 2] = [BudgetClass::Ordinary, BudgetClass::Large];

#[derive(Debug, Clone)]
enum Step {
    Take {
        class: BudgetClass,
        bytes: usize,
    },
    TakeWithin {
        bytes: usize,
    },
    Shrink {
        bytes: usize,
    },
    /// Frees its share, or leaves the queue.
    Drop,
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![Just(BudgetClass::Ordinary), Just(BudgetClass::Large)];
    prop_oneof![
        4 => (class, 1..=2 * BOUND).prop_map(|(class, bytes)| Step::Take { class, bytes }),
        1 => (1..=BOUND).prop_map(|bytes| Step::TakeWithin { bytes }),
        1 => (0..=BOUND).prop_map(|bytes| Step::Shrink { bytes }),
        2 => Just(Step::Drop),
    ]
}

/// A task that has a share, or waits for one.
enum Taker {
    Holds(Share),
    Waits(Pin<Box<dyn Future<Output = Share>>>),
}

impl Taker {
    fn take(mut share: Share, class: BudgetClass, bytes: usize) -> Taker {
        if share.try_grow(class, bytes) {
            return Taker::Holds(share);
        }
        Taker::Waits(Box::pin(async move {
            share.grow(class, bytes).await;
            share
        }))
        .polled()
    }

    fn polled(self) -> Taker {
        match self {
            Taker::Waits(mut waits) => match poll(waits.as_mut()) {
                Poll::Ready(share) => Taker::Holds(share),
                Poll::Pending => Taker::Waits(waits),
            },
            holds @ Taker::Holds(_) => holds,
        }
    }

    fn stepped(self, step: &Step, budget: &Arc<Budget>) -> Taker {
        match (self, step) {
            (Taker::Holds(share), Step::Take { class, bytes }) => {
                Taker::take(share, *class, *bytes)
            }
            (Taker::Holds(mut share), Step::TakeWithin { bytes }) => {
                share.try_within(*bytes);
                Taker::Holds(share)
            }
            (Taker::Holds(mut share), Step::Shrink { bytes }) => {
                share.shrink_to(*bytes);
                Taker::Holds(share)
            }
            (_, Step::Drop) => Taker::Holds(budget.share()),
            (waits @ Taker::Waits(_), _) => waits.polled(),
        }
    }
}

proptest! {
    #[test]
    fn the_bound_holds_except_for_one_frame_of_each_lane_and_no_frame_waits_forever(
        steps in proptest::collection::vec((0..TAKERS, step()), 1..200),
    ) {
        let budget = budget(BOUND);
        let mut takers: Vec<_> = (0..TAKERS).map(|_| Taker::Holds(budget.share())).collect();
        for (taker, step) in &steps {
            let before = std::mem::replace(&mut takers[*taker], Taker::Holds(budget.share()));
            takers[*taker] = before.stepped(step, &budget);
            takers = takers.into_iter().map(Taker::polled).collect();
            prop_assert!(budget.held.load(Ordering::Relaxed) <= BOUND);
            for class in CLASSES {
                let overdrawn = |taker: &&Taker| {
                    matches!(taker, Taker::Holds(share) if share.overdrawn == Some(class))
                };
                let line = &budget.state.lock().lines[class as usize];
                prop_assert_eq!(takers.iter().filter(overdrawn).count(), usize::from(line.overdrawn));
                prop_assert!(line.waiting.is_empty() || line.overdrawn, "somebody will give back");
            }
        }
        while !takers.is_empty() {
            let before = takers.len();
            // Holders free their shares; waiting tasks are polled.
            takers.retain(|taker| matches!(taker, Taker::Waits(_)));
            takers = takers.into_iter().map(Taker::polled).collect();
            let holds = |taker: &Taker| matches!(taker, Taker::Holds(_));
            prop_assert!(takers.len() < before || takers.iter().any(holds), "they wait for ever");
        }
        prop_assert_eq!((budget.held(), budget.waiting()), (0, 0));
    }
}
