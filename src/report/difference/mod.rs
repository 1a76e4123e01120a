//! Difference: what changed from one report to another, and which of it exceeds the noise.
//!
//! Two rows are beside each other where they did the same work. What is compared is the median, over batches, of
//! the time per operation. Batches that are neighbours in time resemble each other, so they count as fewer than they
//! are; from that many, order statistics give the interval in which the ratio of the medians lies, whatever the times'
//! distribution, as long as it is the same of both up to a factor. The intervals of all rows together are right in 19 of 20 comparisons, so that 200 rows of an equal
//! program do not bring forth ten differences.
//!
//! The noise is that of one run. What is otherwise from run to run (where memory lies, clocks, other load) two reports
//! cannot tell from a change of the program.

mod counts;
mod facts;
mod independence;
mod interval;
mod matching;
mod side;
mod text;
mod verdict;
mod whole;

pub use counts::CountChange;
pub use facts::Fact;
pub use matching::{Apart, Name};
pub use side::Side;
pub use text::difference_text;
pub use verdict::{RowDifference, RowVerdict};
pub use whole::{Difference, IdleDifference, OnlyIn, Origin};
