//! Region error: why shared memory could not be had.

/// Why a region could not be made or mapped.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {len} bytes of shared memory for {name}: {source}{}", advice(*.source))]
pub struct RegionError {
    pub(super) action: &'static str,
    pub(super) name: &'static str,
    pub(super) len: usize,
    pub(super) source: rustix::io::Errno,
}

/// What the reader of an error can do.
fn advice(source: rustix::io::Errno) -> &'static str {
    use rustix::io::Errno;
    match source {
        Errno::MFILE => "; the program has no file descriptor left: raise its limit (ulimit -n)",
        Errno::NFILE => "; the system has no file descriptor left: raise fs.file-max",
        _ => "",
    }
}
