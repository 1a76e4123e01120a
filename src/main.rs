//! The program `nfence`: see `native_fence::cli`.

fn main() -> std::process::ExitCode {
    native_fence::cli::main()
}
