//! The file that is written: which format, by its name.

use crate::cli::output::replace;
use crate::trace::Trace;
use anyhow::bail;
use std::path::Path;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Chrome's trace events.
    Chrome,
    /// nfence's own.
    Native,
}

impl Format {
    /// By the ending of the name.
    pub(super) fn of(path: &Path) -> anyhow::Result<Self> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending {
            Some("json") => Ok(Self::Chrome),
            Some("nftrace") => Ok(Self::Native),
            _ => bail!(
                "{}: the name of a trace ends in .json, for Perfetto's user interface, or in .nftrace, to be read back",
                path.display()
            ),
        }
    }
}

/// Writes it, and gives its size in bytes. What was in the file stays until all is written.
pub(super) fn write(trace: &Trace, format: Format, path: &Path) -> anyhow::Result<u64> {
    replace(path, |to| match format {
        Format::Chrome => trace.write_chrome(to).map_err(anyhow::Error::from),
        Format::Native => trace.write(to).map_err(anyhow::Error::from),
    })
}
