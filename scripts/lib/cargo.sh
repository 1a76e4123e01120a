# shellcheck shell=bash
# shellcheck disable=SC2154  # root, the repository, is set by the script that reads this
# Cargo: where it is, what it needs of the machine, and where it puts what it builds.

# Puts cargo on the PATH; rustup's folder is not on that of a shell opened before it was installed.
cargo_find() {
    local home=${CARGO_HOME:-${HOME:-}/.cargo}
    [[ :$PATH: == *":$home/bin:"* ]] || PATH=$PATH:$home/bin
    command -v cargo >/dev/null ||
        die "Rust is missing: install it as https://rustup.rs says, then run this again"
}

# The target folder as an absolute path; a relative CARGO_TARGET_DIR counts from the caller's folder.
cargo_target() {
    case ${CARGO_TARGET_DIR:-} in
        '') printf '%s/target' "$root" ;;
        /*) printf '%s' "$CARGO_TARGET_DIR" ;;
        *) printf '%s/%s' "$PWD" "$CARGO_TARGET_DIR" ;;
    esac
}

# Rust links with the C compiler, and that needs the C library's headers and start files too.
cargo_want_linker() { command -v cc >/dev/null || apt_want 'a C linker' gcc libc6-dev; }

# cargo-nextest, built from its sources where it is missing; that takes some minutes, once.
cargo_nextest() {
    cargo nextest --version >/dev/null 2>&1 && return
    say 'installing cargo-nextest (it is built from source: some minutes, once)'
    cargo install --locked cargo-nextest
}
