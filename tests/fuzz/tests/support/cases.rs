//! Cases of a test that plays many.

/// A number that the environment sets.
pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    let asked = std::env::var(name).ok();
    asked.map_or(usual, |asked| asked.parse().expect("a number"))
}

/// Says which case it was, if it panics.
pub(crate) struct Which(pub(crate) &'static str, pub(crate) u64);

impl Drop for Which {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: case {}", self.0, self.1);
        }
    }
}
