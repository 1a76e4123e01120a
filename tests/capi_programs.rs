//! The C interface from C: programs that are compiled against the headers and linked with the library
//! as `scripts/capi` builds it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod wddm_table;
}

#[path = "support/respawned.rs"]
mod respawned;

use native_fence::abi::Opcode;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::wddm_table::{BITS, PROGRAM, STATUSES, VALUES};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs it; what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output();
    let output = output.unwrap_or_else(|error| {
        panic!("{command:?} did not start: {error}; install a C compiler (Debian: gcc libc6-dev)")
    });
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}{complained}",
        output.status
    );
    printed
}

/// A C compiler that takes no doubtful C.
fn cc() -> Command {
    let mut cc = Command::new("cc");
    cc.args([
        "-x",
        "c",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-pthread",
    ]);
    cc.arg("-I").arg(root().join("src/capi"));
    cc
}

/// Both headers are C++ too: with all warnings, though not with -pedantic, which takes no anonymous
/// structures, of which the published ones are made.
#[test]
fn the_headers_are_cpp_too() {
    let folder = scratch();
    let source = folder.path().join("headers.cpp");
    let text = "#include \"native_fence.h\"\n#include \"native_fence_ring.h\"\n\
                extern NTSTATUS submits(NF_RING *ring, uint64_t *value);\n\
                NTSTATUS submits(NF_RING *ring, uint64_t *value) { return NfRingSubmit(ring, value); }\n\
                extern const void *made(D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *fence);\n\
                const void *made(D3DKMT_CREATESYNCHRONIZATIONOBJECT2 *fence) {\n\
                  fence->Info.Type = D3DDDI_MONITORED_FENCE;\n\
                  fence->Info.Flags.NoGPUAccess = 1;\n\
                  NF_HWQUEUE_COMMAND command = {NF_OPCODE_SIGNAL, 0, 1};\n\
                  (void)command;\n\
                  if (NfD3DKMTCreateSynchronizationObject2(fence) < 0) { return nullptr; }\n\
                  return fence->Info.MonitoredFence.FenceValueCPUVirtualAddress;\n\
                }\n";
    std::fs::write(&source, text).unwrap();
    run(Command::new("c++")
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-O1", "-c"])
        .arg("-I")
        .arg(root().join("src/capi"))
        .arg(&source)
        .arg("-o")
        .arg(folder.path().join("headers.o")));
}

/// A folder of this test's own, gone with it.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The folder of the library, built as a program's author builds it.
fn library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target)
        .args([
            "rustc",
            "--locked",
            "--quiet",
            "--lib",
            "--features",
            "capi",
        ])
        .args(["--crate-type", "cdylib"]));
    target.join("debug")
}

/// Lines of C that print what the compiler makes of the header, and what they should print.
fn questions() -> (String, String) {
    let (mut ask, mut expect) = (String::new(), String::new());
    let mut question = |name: &str, expression: &str, value: u64| {
        let _ = writeln!(
            ask,
            r#"  printf("{name} %llu\n", (unsigned long long)({expression}));"#
        );
        let _ = writeln!(expect, "{name} {value}");
    };
    for (name, bytes, members) in PROGRAM {
        question(name, &format!("sizeof({name})"), *bytes as u64);
        for (member, offset) in *members {
            let expression = format!("offsetof({name}, {member})");
            question(&format!("{name}.{member}"), &expression, *offset as u64);
        }
    }
    for (name, parts) in BITS {
        for (part, low, width) in *parts {
            let bits = ((1_u64 << width) - 1) << low;
            let expression = format!(
                "((union {name}){{.{part} = {}}}).Value",
                (1_u64 << width) - 1
            );
            question(&format!("{name}.{part}"), &expression, bits);
        }
        question(name, &format!("sizeof({name})"), 4);
    }
    for (name, values) in VALUES {
        question(name, &format!("sizeof({name})"), 4);
        for (value, number) in *values {
            question(value, value, u64::from(*number));
        }
    }
    for (name, number) in STATUSES {
        question(name, &format!("(uint32_t){name}"), u64::from(*number));
    }
    for (name, opcode) in [
        ("NF_OPCODE_WAIT", Opcode::Wait),
        ("NF_OPCODE_SIGNAL", Opcode::Signal),
        ("NF_OPCODE_PROGRESS", Opcode::Progress),
    ] {
        question(name, name, opcode as u64);
    }
    question("packet", "NF_PACKET_BYTES", native_fence::abi::PACKET_BYTES);
    (ask, expect)
}

/// What the C compiler makes of the header is what the table says: sizes, offsets, bits, values.
#[test]
fn the_header_has_the_published_layouts() {
    let folder = scratch();
    let (source, program) = (
        folder.path().join("layouts.c"),
        folder.path().join("layouts"),
    );
    let (ask, expect) = questions();
    let text = format!(
        "#include \"native_fence_ring.h\"\n#include <stdio.h>\nint main(void) {{\n{ask}  return 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    // The inline functions name the library's, which this program does not call.
    let object = folder.path().join("layouts.o");
    run(cc()
        .arg("-std=c11")
        .arg("-O1")
        .arg("-c")
        .arg(&source)
        .arg("-o")
        .arg(&object));
    run(Command::new("cc").arg(&object).arg("-o").arg(&program));
    let printed = run(&mut Command::new(&program));
    for (found, wanted) in printed.lines().zip(expect.lines()) {
        assert_eq!(found, wanted);
    }
    assert_eq!(printed, expect);
}

/// Compiles a program of `tests/capi` against the headers, links it with the library, runs it: it
/// says that all was as it should be. Left out where there is no device.
fn runs_well(name: &str) {
    let required = std::env::var_os("NFENCE_REQUIRE_DEVICE").is_some();
    if let (Err(error), false) = (native_fence::Adapter::open_best(), required) {
        println!("left out: {error}");
        return;
    }
    runs_well_with(name, &[]);
}

/// The same on whatever device `environment` gives.
fn runs_well_with(name: &str, environment: &[(&str, OsString)]) {
    let library = library();
    let folder = scratch();
    let program = folder.path().join(name);
    run(cc()
        .args(["-std=c11", "-O1"])
        .arg(root().join("tests/capi").join(format!("{name}.c")))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg("-lnative_fence"));
    let printed = run(Command::new(&program)
        .envs(environment.iter().cloned())
        .env("LD_LIBRARY_PATH", &library));
    assert_eq!(printed, "done\n");
}

/// A C program submits to a hardware queue through its own ring: created, signalled by the GPU,
/// waited for, destroyed. Open: a Vulkan device is needed, and none but lavapipe is in CI.
#[test]
fn a_c_program_signals_and_waits() {
    runs_well("round_trip");
}

/// A submission that has no place is refused, and the wait at the ring's beginning, which it would have
/// replaced, is obeyed.
#[test]
fn a_c_program_is_told_that_its_ring_is_full() {
    runs_well("full_ring");
}

/// MF-01 to MF-05 and HQ-10 from C: a program makes monitored fences and a kernel-mode queue, whose
/// commands, waits and signals go through the OS, by the queue and by its context.
#[test]
fn a_c_program_submits_through_the_os() {
    runs_well("kernel_queue");
}

/// HQ-02, HQ-12 from C: the doorbell of a queue is made and destroyed by the calls of these names, one at a
/// time, and without one nothing runs; a device is ended in order, in the time that it is given.
#[test]
fn a_c_program_ends_its_device() {
    runs_well("doorbell");
}

/// MF-06 from C, on a device without 64-bit atomics: what is too far is refused to the CPU, to commands and
/// to the OS.
#[test]
fn a_c_program_is_refused_what_is_too_far() {
    if let Some(environment) = respawned::on_swiftshader() {
        runs_well_with("narrow", &environment);
    }
}

/// HQ-03 for the ring that a C program writes: a submission that has no place is refused, and changes
/// no word. Needs neither the library nor a device.
///
/// Kills `a-full-ring-takes-submissions`.
#[test]
fn hq_03_a_full_ring_of_a_c_program_takes_no_submission() {
    let folder = scratch();
    let program = folder.path().join("ring_words");
    run(cc()
        .args(["-std=c11", "-O1"])
        .arg(root().join("tests/capi/ring_words.c"))
        .arg("-o")
        .arg(&program));
    assert_eq!(run(&mut Command::new(&program)), "done\n");
}
