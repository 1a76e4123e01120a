//! `nfence diff`: what changed from one comparison to another, and which of it exceeds the noise.

use super::Ending;
use super::output::{JsonOutput, colour, print};
use super::result_file::read;
use crate::report::{Difference, RowVerdict, Style, difference_text};
use anyhow::ensure;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  nfence compare --json before.json           measure, change something, measure again:
  nfence compare --json after.json
  nfence diff before.json after.json          what is slower or faster beyond the noise
  nfence diff before.json after.json --all    also what is not
  nfence diff before.json after.json --least 10% --fail-if-slower
  nfence diff before.json after.json --json | jq '.rows[] | select(.verdict == \"slower\")'

Two runs of the same program differ as well, by what the machine did meanwhile: compare two such first.

Exit codes: 0 compared, 1 something did not work, no row is in both, or with --fail-if-slower something is slower or \
no row has batches enough to say, 2 usage.";

/// Compares two results of `nfence compare --json`, and says which differences exceed the noise.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Diff {
    /// What `nfence compare --json` wrote before
    #[arg(value_name = "A.json")]
    a: PathBuf,

    /// What it wrote after
    #[arg(value_name = "B.json")]
    b: PathBuf,

    /// Differences below this are of no interest, however sure
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    least: f64,

    /// Also rows in which there is no difference
    #[arg(long)]
    all: bool,

    /// Exit code 1 if a row is slower, or if none could be told to be
    #[arg(long)]
    fail_if_slower: bool,

    /// All of it as JSON to stdout
    #[arg(long)]
    json: bool,
}

impl Diff {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let (a, b) = (read(&self.a)?, read(&self.b)?);
        let [a_name, b_name] = [&self.a, &self.b].map(|path| path.display().to_string());
        let difference = Difference::of((&a_name, &a), (&b_name, &b), self.least);
        if self.json {
            JsonOutput::open(Path::new("-"))?.write(&difference)?;
        } else {
            let style = Style {
                colour: colour(false),
            };
            print(&difference_text(&difference, self.all, style), false);
        }
        let is_slower = difference.count(RowVerdict::Slower) > 0;
        ensure!(
            !difference.rows.is_empty() || !difference.idle.is_empty(),
            "no row is in both, or none did the same work: compare what was measured of the same scenarios"
        );
        ensure!(
            !self.fail_if_slower || difference.judged() > 0,
            "no row has batches enough to say whether it is slower: measure with more (--batches)"
        );
        Ok(if self.fail_if_slower && is_slower {
            Ending::NotWell
        } else {
            Ending::Well
        })
    }
}

/// A share, of a number of hundredths.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent: f64 = number
        .parse()
        .map_err(|_| "it is not a number of percent, as 5%".to_owned())?;
    if (0.0..=1000.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err("it is not between 0% and 1000%".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_are_with_or_without_their_sign() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("12.5"), Ok(0.125));
        assert_eq!(share("0 %"), Ok(0.0));
        for text in ["", "%", "much", "-1%", "1001%", "NaN", "inf"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
