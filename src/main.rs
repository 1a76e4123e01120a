//! The program `nfence`: see `native_fence::cli`.

#[cfg(not(loom))]
fn main() -> std::process::ExitCode {
    native_fence::cli::main()
}

/// Cargo builds the program with every test.
#[cfg(loom)]
fn main() {}
