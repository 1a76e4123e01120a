//! The SPIR-V of native-fence is checked in, so that a build needs no shader compiler.
//!
//! Whoever edits a shader runs this program: it compiles every `shaders/*.comp`, writes the
//! binaries, their disassembly and the Rust table that embeds them, and removes what no shader
//! stands behind any more. Kernels of programs, `shaders/examples/*.comp` and `shaders/viewer/*.comp`,
//! have binaries and no place in the table. CI runs it with `--check`, which writes nothing.
//!
//! `sources` finds shaders and variants, `compile` speaks to glslang, `table` writes Rust,
//! `tree` compares with the disk.

#![forbid(unsafe_code)]

mod compile;
mod sources;
mod table;
mod tree;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Rebuilds the checked-in SPIR-V of native-fence.

Usage: cargo run --locked -p nfence-shaders [-- --check]

Compiles shaders/*.comp into shaders/spv/<name>.spv with <name>.spvasm beside it, and writes
src/vulkan/shaders/table.rs; and those of shaders/examples/ and shaders/viewer/ into folders of the same
names in shaders/spv/. A shader asks for more variants in comment lines before its code:
  //! variant: <suffix> <DEFINE>[=<value>] ...   gives shaders/spv/<name>.<suffix>.spv

Options:
  --check     write nothing; exit 1 and say why where the checked-in files are not what the
              shaders compile to
  -h, --help  print this";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let check = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--check"] => true,
        ["-h" | "--help"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!(
                "nfence-shaders: unknown arguments `{}`; see --help",
                args.join(" ")
            );
            return ExitCode::from(2);
        }
    };
    // As cargo sets it for this run: a build folder may be shared by copies of the tree.
    let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        eprintln!("nfence-shaders: run me by `cargo run --locked -p nfence-shaders`");
        return ExitCode::from(2);
    };
    let root = Path::new(&manifest).join("../..");
    match run(&root, check) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, check: bool) -> anyhow::Result<()> {
    let wanted = tree::generate(root)?;
    let changes = tree::compare(root, &wanted)?;
    if !check {
        for change in &changes {
            change.apply(root)?;
            println!("{}", change.done());
        }
        println!(
            "{} generated files, {} changed",
            wanted.len(),
            changes.len()
        );
        return Ok(());
    }
    for change in &changes {
        eprintln!("{}", change.complaint());
    }
    anyhow::ensure!(
        changes.is_empty(),
        "The checked-in shaders are not up to date: run `cargo run --locked -p nfence-shaders` \
         and commit what it writes."
    );
    println!("{} generated files are up to date", wanted.len());
    Ok(())
}

#[cfg(test)]
mod tests;
