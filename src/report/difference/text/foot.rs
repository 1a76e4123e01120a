//! Foot: how it was compared, and what that cannot know.

use super::{percent, rows};
use crate::report::Style;
use crate::report::difference::Difference;
use crate::report::table::wrapped;

pub(super) fn foot(difference: &Difference, style: Style) -> String {
    let how = format!(
        "A and B are medians over batches of the time of an operation, also where `nfence compare` shows percentiles \
         of single operations. A batch resembles the one before, so batches count as the fewer the more they do. The \
         interval is of order statistics and supposes no distribution but that both are noisy alike, up to a factor: \
         it is so wide that with chance {} at most any of {} comes out as different though nothing is but the noise \
         within a run. Where one run is much noisier than the other it may be some times that.",
        percent(difference.mistaken),
        rows(difference.judged()),
    );
    let limit = "It cannot know what is otherwise from run to run: other load, clocks, where memory lies. That is \
                 often more. Two runs of the same program, compared like this, show how much.";
    let lines = [wrapped(&how, ""), wrapped(limit, "")];
    format!("{}\n", style.faint(&lines.join("\n")))
}
