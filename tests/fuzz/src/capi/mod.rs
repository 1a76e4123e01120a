//! C interface: whatever a program passes to its calls, in whatever order, no call panics, what is
//! refused is refused as the header says and changes nothing, and nothing is left when all was closed.
//!
//! What the header calls undefined is not passed: pointers lead to what is there, or are NULL or not
//! aligned; numbers of descriptors are the case's own or nobody's. The adapter is one over the model,
//! whose engine has its thread: what is asserted holds whenever it runs.

mod arguments;
mod call;
mod course;
mod events;
mod header;
mod objects;
mod ring;
mod steps;
mod things;
mod values;

use arbitrary::{Arbitrary, Result, Unstructured};
use course::Course;
use steps::Step;

/// A course of calls.
#[derive(Debug)]
pub struct Program(Vec<Step>);

/// How many calls there were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    /// That succeeded.
    pub taken: u64,
    /// That were refused.
    pub refused: u64,
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut steps = Vec::new();
        while !u.is_empty() && steps.len() < 256 {
            steps.push(u.arbitrary()?);
        }
        Ok(Self(steps))
    }
}

impl Program {
    /// Plays the program.
    ///
    /// # Panics
    /// If a call did something that the header forbids.
    #[must_use]
    pub fn play(self) -> Played {
        let mut course = Course::new();
        for step in self.0 {
            course.step(step);
        }
        course.end()
    }
}
