//! Explored moving log: a log that is moved while an engine logs and the OS reads, as loom explores it.
//!
//! Where the log lies, who moves it and who reads it are the real ones; of the engine and the driver there is what an
//! engine stores, and that it logs in one place at a time.

use super::log_buffer::LogRead;
use super::log_cursor::{LogCursor, LogPlace};
use super::log_places::LogPlaces;
use super::log_pools::LogPools;
use crate::abi::{LOG_BUFFER_ENTRIES, LogOperation, LogType};
use crate::kmd::ExploredLog;
use crate::shared::Providers;
use crate::sync::{Arc, Mutex, lock};
use std::convert::Infallible;
use std::error::Error;

const KIND: LogType = LogType::Signals;
/// More than a page has: a log in a region of its own.
const ENTRIES: u64 = 2 * LOG_BUFFER_ENTRIES;

/// See the file's head.
#[derive(Debug)]
pub struct ExploredMovingLog {
    pools: LogPools,
    places: LogPlaces,
    cursor: Arc<LogCursor>,
    /// Whoever has the engine: a slice, or the driver when no slice knows the queue.
    engine: Mutex<(ExploredLog, u64)>,
}

impl ExploredMovingLog {
    /// A log that lies somewhere, and a reader of it.
    ///
    /// # Errors
    /// Never.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let pools = LogPools::new(&Arc::new(Providers::default()));
        let places = LogPlaces::new(KIND);
        let cursor = places.cursor();
        let (first, engine) = new_place(&pools)?;
        places.move_to(&first, || Ok::<_, Infallible>(()))?;
        let engine = Mutex::new((engine, 0));
        Ok(Self {
            pools,
            places,
            cursor,
            engine,
        })
    }

    /// A place to which it may be moved; loom wants its words made before there are several threads.
    ///
    /// # Errors
    /// Never.
    pub fn next(&self) -> Result<impl FnOnce(&Self) + Send + 'static, Box<dyn Error>> {
        let (place, engine) = new_place(&self.pools)?;
        Ok(move |log: &Self| {
            let tell_driver = || {
                lock(&log.engine).0 = engine;
                Ok::<_, Infallible>(())
            };
            let Ok(()) = log.places.move_to(&place, tell_driver);
        })
    }

    /// The engine logs the next value, which begin with 1.
    ///
    /// # Panics
    /// If the log is not mapped: a bug of ours.
    pub fn log(&self) {
        let (engine, last) = &mut *lock(&self.engine);
        *last += 1;
        let logged = engine.log(LogOperation::SignalExecuted, *last);
        logged.expect("the log is mapped");
    }

    /// What was logged since the last call.
    #[must_use]
    pub fn read(&self) -> LogRead {
        let Ok(read) = self.cursor.read(|| Ok::<_, Infallible>(()));
        read
    }
}

fn new_place(pools: &LogPools) -> Result<(Arc<LogPlace>, ExploredLog), Box<dyn Error>> {
    let memory = pools.allocate(KIND, ENTRIES)?;
    let place = memory.place();
    assert_eq!(place.offset, 0, "it is alone in its region");
    let engine = ExploredLog::new(place.region, ENTRIES as u32)?;
    Ok((Arc::new(LogPlace::new(memory)), engine))
}
