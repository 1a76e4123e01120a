//! Engine ledger: what an engine in a process of its own may say next.
//!
//! The parent writes down what it has asked and started; a reply counts only where it answers to that.

use super::engine_protocol::{ProtocolError, Reply};
use std::collections::BTreeSet;

/// What a reply means.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum EngineNews {
    /// The request with this number is answered: by an address, or by why not.
    Answer(u64, Result<u64, String>),
    /// All slices up to this one have ended.
    Ended(u64),
    /// The engine's device is lost.
    Lost,
}

/// What the parent has asked and started, by which it judges what it is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineLedger {
    requests: u64,
    /// The requests that are not replied to.
    asked: BTreeSet<u64>,
    started: u64,
    ended: u64,
}

impl EngineLedger {
    /// A request is sent: its number.
    pub fn ask(&mut self) -> u64 {
        self.requests += 1;
        self.asked.insert(self.requests);
        self.requests
    }

    /// The engine is attached: the next slice is that after `before`.
    pub fn attach(&mut self, before: u64) {
        (self.started, self.ended) = (before, before);
    }

    /// A slice is started.
    pub fn start(&mut self, slice: u64) {
        self.started = slice;
    }

    /// Takes a reply for what it may be.
    ///
    /// # Errors
    /// Nothing like it could have come.
    pub fn take(&mut self, reply: Reply) -> Result<EngineNews, ProtocolError> {
        match reply {
            Reply::Done { number, .. } | Reply::Failed { number, .. }
                if !self.asked.remove(&number) =>
            {
                Err(ProtocolError::Number(number))
            }
            Reply::Done { number, value } => Ok(EngineNews::Answer(number, Ok(value))),
            Reply::Failed { number, why } => Ok(EngineNews::Answer(number, Err(why))),
            Reply::Ended { slice } => {
                let (next, started) = (self.ended + 1, self.started);
                if slice != next || slice > started {
                    let told = slice;
                    return Err(ProtocolError::Slice {
                        told,
                        next,
                        started,
                    });
                }
                self.ended = slice;
                Ok(EngineNews::Ended(slice))
            }
            Reply::Lost => Ok(EngineNews::Lost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PR-01: an end of a slice counts for the next slice that was started, and a reply for what was asked.
    ///
    /// Kills `any-end-is-the-next` and `any-reply-is-the-one`.
    #[test]
    fn pr_01_a_reply_that_could_not_have_come_is_an_error() {
        let mut ledger = EngineLedger::default();
        let ended = |slice| Reply::Ended { slice };
        ledger.attach(4);
        for slice in [0, 4, 5, 6, u64::MAX] {
            assert!(
                ledger.clone().take(ended(slice)).is_err(),
                "{slice}: none is started"
            );
        }
        ledger.start(5);
        ledger.start(6);
        for slice in [0, 4, 6, 7, u64::MAX] {
            assert!(
                ledger.clone().take(ended(slice)).is_err(),
                "{slice}: 5 is next"
            );
        }
        assert_eq!(ledger.take(ended(5)), Ok(EngineNews::Ended(5)));
        assert!(ledger.clone().take(ended(5)).is_err(), "twice");
        assert_eq!(ledger.take(ended(6)), Ok(EngineNews::Ended(6)));

        let done = |number| Reply::Done { number, value: 9 };
        let failed = |number| Reply::Failed {
            number,
            why: "no".into(),
        };
        assert!(ledger.take(done(0)).is_err() && ledger.take(failed(1)).is_err());
        let number = ledger.ask();
        assert!(ledger.take(done(number + 1)).is_err());
        let answered = EngineNews::Answer(number, Ok(9));
        assert_eq!(ledger.take(done(number)), Ok(answered));
        assert!(ledger.take(done(number)).is_err(), "twice");
        let next = ledger.ask();
        assert!(ledger.take(failed(number)).is_err(), "an old one");
        assert_eq!(
            ledger.take(failed(next)),
            Ok(EngineNews::Answer(next, Err("no".into())))
        );
        // One that takes its time, and one that does not.
        let [slow, soon] = [ledger.ask(), ledger.ask()];
        let answered = EngineNews::Answer(soon, Ok(9));
        assert_eq!(ledger.take(done(soon)), Ok(answered));
        assert!(ledger.take(failed(soon)).is_err(), "twice");
        let answered = EngineNews::Answer(slow, Ok(9));
        assert_eq!(ledger.take(done(slow)), Ok(answered));
    }
}
