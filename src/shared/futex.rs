//! Futex: sleeping for a word of memory that several processes map, and calling who sleeps for it.
//!
//! What the system keeps is a list of sleepers by the file and the place in it, and no object that the
//! processes share: nobody who has the memory can make a caller or a sleeper wait for him. He can wake
//! sleepers, change the word, and have as many threads of his own in the list as he may have.

use super::Word;
use crate::sync::AtomicU32;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

const _: () = assert!(
    cfg!(target_endian = "little"),
    "the low half of a word is the first"
);

impl Word<'_> {
    /// The low half, which is all that the system compares.
    fn low_half(&self) -> &AtomicU32 {
        // SAFETY: the word lies in a mapping that the borrow keeps, and is aligned to 8. The system alone
        // reads the half, atomically; every access of the program's is to the whole word.
        unsafe { &*self.address().cast::<AtomicU32>() }
    }

    /// Adds 1 and wakes all who sleep for the word, in whatever process. Waits for nobody. What this
    /// thread stored before is visible to whoever reads the word afterwards.
    ///
    /// # Panics
    /// As [`Word::meet`].
    pub fn call(self) {
        self.meet(1);
        // In memory of a file there is nothing that it could refuse.
        let _sleepers = futex::wake(self.low_half(), Flags::empty(), i32::MAX.cast_unsigned());
    }

    /// Sleeps until somebody calls, while the word's low half is that of `seen`; may return for nothing.
    /// Whoever calls after `seen` was read is not missed, but after exactly 2^32 calls.
    ///
    /// # Panics
    /// When the system has no such sleep.
    pub fn sleep_while(self, seen: u64) {
        match futex::wait(self.low_half(), Flags::empty(), seen as u32, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => panic!("a thread cannot sleep for a shared word: {error}"),
        }
    }
}
