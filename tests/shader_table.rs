//! The shaders that ship with the library are what their sources say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod spirv;
}

use std::collections::BTreeSet;
use std::path::Path;

use native_fence::vulkan::shaders::{ALL, Shader};
use support::spirv::{Barrier, MAGIC, Module, model, scope, semantics};

fn source(shader: &Shader) -> String {
    let name = shader
        .name
        .split('.')
        .next()
        .expect("split gives at least one part");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("shaders/{name}.comp"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Whether a line of `text` is `directive`, comments and spacing aside.
fn has_directive(text: &str, directive: &str) -> bool {
    let code = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let mut lines = code.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.any(|line| line == directive)
}

#[test]
fn every_shader_begins_with_the_magic_number_and_is_spirv_1_5() {
    for shader in ALL {
        assert_eq!(shader.words[0], MAGIC, "{}", shader.name);
        assert_eq!(
            Module::new(shader.words).version(),
            (1, 5),
            "{}",
            shader.name
        );
    }
}

#[test]
fn every_source_file_has_an_entry_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let mut files = BTreeSet::new();
    for entry in folder.read_dir().into_iter().flatten() {
        let path = entry.expect("the folder can be read").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "comp")
        {
            files.insert(
                path.file_stem()
                    .expect("it has a name")
                    .to_string_lossy()
                    .into_owned(),
            );
        }
    }
    let plain = ALL
        .iter()
        .map(|shader| shader.name)
        .filter(|name| !name.contains('.'));
    assert_eq!(plain.map(str::to_owned).collect::<BTreeSet<_>>(), files);
}

#[test]
fn a_source_with_the_vulkan_memory_model_is_shipped_with_it() {
    for shader in ALL {
        let source = source(shader);
        let (addressing, memory) = Module::new(shader.words).memory_model();
        // The shader library has the pragma.
        let has_model = has_directive(&source, "#pragma use_vulkan_memory_model")
            || has_directive(&source, "#include \"include/native_fence.glsl\"")
            || has_directive(&source, "#include \"include/self_scheduling.glsl\"");
        assert_eq!(
            memory == model::MEMORY_VULKAN,
            has_model,
            "{}: memory model {memory}",
            shader.name
        );
        if has_directive(&source, "#extension GL_EXT_buffer_reference : require") {
            let physical = model::ADDRESSING_PHYSICAL_STORAGE_BUFFER_64;
            assert_eq!(addressing, physical, "{}: addressing model", shader.name);
        }
    }
}

/// Instructions after the header: a struct `Page` of two words, of which one is 64 bits wide, its
/// twin without offsets, and a barrier.
fn by_hand() -> Vec<u32> {
    let op = |opcode: u32, operands: &[u32]| {
        let length = u32::try_from(operands.len() + 1).expect("short");
        [&[length << 16 | opcode], operands].concat()
    };
    let name = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(text.len() / 4 * 4 + 4, 0);
        bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect::<Vec<_>>()
    };
    [
        vec![MAGIC, 0x0001_0500, 0, 20, 0],
        op(14, &[5348, 3]),
        op(5, &[[9].as_slice(), &name("Page")].concat()),
        op(5, &[[10].as_slice(), &name("Page")].concat()),
        op(6, &[[9, 0].as_slice(), &name("flags")].concat()),
        op(6, &[[9, 1].as_slice(), &name("current_value")].concat()),
        op(72, &[9, 0, 35, 0]),
        op(72, &[9, 1, 35, 8]),
        op(21, &[1, 32, 0]),
        op(21, &[2, 64, 0]),
        op(30, &[9, 1, 2]),
        op(30, &[10, 1, 2]),
        op(43, &[1, 3, 2]),
        op(43, &[1, 4, 0x148]),
        op(43, &[2, 5, 0xffff_ffff, 7]),
        op(43, &[1, 6, 1]),
        op(43, &[1, 7, 0x44]),
        op(224, &[3, 3, 4]),
        op(228, &[12, 6, 7, 5]),
        op(62, &[13, 5, 0x2, 8]),
        op(62, &[13, 5, 0x22, 8]),
        op(61, &[2, 14, 13]),
    ]
    .concat()
}

#[test]
fn the_walker_finds_constants_barriers_atomics_and_offsets() {
    let words = by_hand();
    let module = Module::new(&words);

    assert_eq!(module.memory_model(), (5348, 3));
    assert_eq!(module.constant(5), Some(0x7_ffff_ffff));
    assert_eq!(module.constant(9), None);
    assert_eq!(module.offset_of("Page", "current_value"), Some(8));
    assert_eq!(module.offset_of("Page", "nothing"), None);
    assert_eq!(module.members("Nothing"), None);
    let expected = Barrier {
        execution: Some(scope::WORKGROUP),
        memory: scope::WORKGROUP,
        semantics: semantics::ACQUIRE_RELEASE
            | semantics::UNIFORM_MEMORY
            | semantics::WORKGROUP_MEMORY,
    };
    assert_eq!(module.control_barriers(), [expected]);
    let private = module.private_accesses();
    assert_eq!(
        private
            .iter()
            .map(|access| access.operands)
            .collect::<Vec<_>>(),
        [[13, 5, 2, 8]]
    );
    let [store] = module.atomics()[..] else {
        panic!("one atomic")
    };
    assert_eq!((store.scope, store.bits), (scope::DEVICE, 64));
    assert_eq!(
        store.semantics,
        semantics::RELEASE | semantics::UNIFORM_MEMORY
    );
}

#[test]
#[should_panic(expected = "cut instruction at word")]
fn the_walker_refuses_a_cut_module() {
    let words = by_hand();
    let _ = Module::new(&words[..words.len() - 1]);
}
