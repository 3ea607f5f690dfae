//! One runtime for all brokers of a process: a fixed number of threads, which the first broker
//! starts.
//!
//! After `fork` the child has the parent's memory without its threads. So the runtime of another
//! process is left alone (it is never dropped, because the drop would wait for threads that do not
//! exist), and a broker that is created in the child starts a new runtime.

use std::io;
use std::sync::Arc;

use pykafka_forks::{Mutex, PerProcess};
use tokio::runtime::{Builder, Runtime};

use crate::network::blocking_handoff::Spares;

/// More threads would only take cores from the clients.
const WORKERS: std::ops::RangeInclusive<usize> = 2..=4;

/// Number of tasks that a thread runs before it polls the sockets. Each task may take a whole turn
/// (`turn`), so the default of 61 would take up to 30 ms.
const TASKS_BETWEEN_POLLS: u32 = 8;

static SHARED: PerProcess<Mutex<Option<Arc<Engine>>>> = PerProcess::new(Mutex::default);

/// The network threads.
#[derive(Debug)]
pub struct Engine {
    runtime: Runtime,
}

impl Engine {
    /// Returns the engine of this process; the first call starts it.
    pub fn shared() -> io::Result<Arc<Engine>> {
        let mut shared = SHARED.get().lock();
        if let Some(engine) = &*shared {
            return Ok(engine.clone());
        }
        Ok(shared.insert(Arc::new(Engine::start()?)).clone())
    }

    fn start() -> io::Result<Engine> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = cores.clamp(*WORKERS.start(), *WORKERS.end());
        let spares = Spares::new(workers);
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers)
            // All of these threads are spares, so they must not run anything else.
            .max_blocking_threads(workers)
            .on_thread_start(move || spares.serve_this_thread())
            .event_interval(TASKS_BETWEEN_POLLS)
            .thread_name("pykafka-net")
            .enable_all()
            .build()?;
        Ok(Engine { runtime })
    }

    /// Handle for spawning tasks.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        self.runtime.handle()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_broker_of_a_process_shares_one_engine() {
        let first = Engine::shared().expect("threads");
        let second = Engine::shared().expect("threads");
        assert!(Arc::ptr_eq(&first, &second));
    }
}
