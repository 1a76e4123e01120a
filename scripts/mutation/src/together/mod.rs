//! Together: many mutants in one build.
//!
//! Most of a trial's time goes into building the library and its test programs again. Here all mutants that can be are
//! woven into one library (`weave`), where a variable of the environment chooses one of them for a process, so
//! that a trial is no more than its test; another one names the folder with a mutant's shaders (`shaders`). Those that
//! cannot be woven, those whose copies the compiler refuses, and those that no test notices this way are tried alone
//! as ever.
//!
//! That a test passes on the tree as it is, is asked on the woven build with no mutant chosen, when a mutant first needs
//! it. One that does not pass there, since it reads the sources, say, has its mutants tried alone.

mod build;
pub(crate) mod jobs;
mod refusal;
pub(crate) mod shaders;
pub(crate) mod weave;

use crate::mutant::{Harness, Mutant};
use crate::mutex::lock;
use crate::tree;
use crate::trial::{Row, TEST_LIMIT, Verdict};
use crate::workshop::{Workshop, tail};
use anyhow::{Context, bail, ensure};
use refusal::{Places, refused};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weave::{Edit, weave};

/// The variable that chooses a mutant by its number.
const CHOSEN: &str = "NFENCE_MUTANT";

/// The variable that names the folder of a mutant's shaders.
const SHADERS: &str = "NFENCE_MUTANT_SHADERS";

/// What tells the woven library which mutant it is, with the variables' names to be put in.
const MODULE: &str = r#"//! Which mutant this process is.

use crate::vulkan::shaders::Shader;
use std::sync::OnceLock;

/// Its number; none has 0.
pub(crate) fn number() -> u32 {
    static NUMBER: OnceLock<u32> = OnceLock::new();
    *NUMBER.get_or_init(|| match std::env::var("{CHOSEN}") {
        Ok(number) => number.parse().expect("{CHOSEN} is a number"),
        Err(_) => 0,
    })
}

/// The mutant's shader of that name, if it has one.
pub(crate) fn shader(built: &Shader) -> Shader {
    let Ok(folder) = std::env::var("{SHADERS}") else {
        return *built;
    };
    match std::fs::read(format!("{folder}/{}.spv", built.name)) {
        Ok(bytes) => {
            let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes")));
            Shader { name: built.name, words: words.collect::<Vec<_>>().leak() }
        }
        Err(_) => *built,
    }
}
"#;

/// A test that takes so much longer than five times what it takes without a mutant hangs: beside other trials it may
/// take a few times as long as it took when it was asked.
const FOR_A_HUNG_ONE: Duration = Duration::from_secs(10);

/// How often the compiler is asked: it finds what is wrong with borrows when the types are right.
const ROUNDS: u32 = 20;

/// How long a test takes with no mutant chosen, beside other trials, if it was asked: `None` of one that does not pass.
type Takes = Option<Option<Duration>>;

/// The variable of the environment that makes a process one of them, and its value.
pub(crate) type Variable = (&'static str, OsString);

/// The mutants that one build has, by number.
#[derive(Debug, Default)]
pub(crate) struct Together<'m> {
    woven: BTreeMap<u32, &'m Mutant>,
    takes: Mutex<BTreeMap<String, Arc<Mutex<Takes>>>>,
    /// The copy in which shaders are compiled is one mutant's at a time.
    shaders_tree: Mutex<()>,
}

impl<'m> Together<'m> {
    /// Weaves all of them that can be into the copy of the tree, and builds it with the test programs that they name.
    pub(crate) fn build(workshop: &Workshop<'_>, chosen: &[&'m Mutant]) -> anyhow::Result<Self> {
        let (together, _) = Self::weave(workshop, chosen, "--all-targets")?;
        if together.woven.is_empty() {
            return Ok(together);
        }
        let log = workshop.fresh_log("together")?;
        let tests = together.woven.values().flat_map(|mutant| mutant.tests());
        workshop.build_once(&workshop.programs(tests), &log)?;
        Ok(together)
    }

    /// Weaves all of them that can be into the copy of the tree, until the compiler takes these targets of it; gives those
    /// too that it refuses.
    pub(crate) fn weave(
        workshop: &Workshop<'_>,
        chosen: &[&'m Mutant],
        targets: &str,
    ) -> anyhow::Result<(Self, Vec<&'m str>)> {
        let is_meant = |mutant: &&&Mutant| {
            let is_rust = Path::new(&mutant.file)
                .extension()
                .is_some_and(|of| of == "rs");
            is_rust
                && mutant.also.is_empty()
                && mutant.file != "src/main.rs"
                && mutant.harness == Harness::Suite
        };
        let mut woven: BTreeMap<u32, &Mutant> =
            (1..).zip(chosen.iter().filter(is_meant).copied()).collect();
        let log = workshop.fresh_log("together")?;
        let mut all_refused = Vec::new();
        for round in 1..=ROUNDS {
            let places = Self::write(workshop, &mut woven)?;
            let (ended, said) = workshop.check(targets, &log)?;
            if ended.succeeded() {
                println!(
                    "{} of {} mutants stand in one build",
                    woven.len(),
                    chosen.len()
                );
                let together = Self {
                    woven,
                    ..Self::default()
                };
                return Ok((together, all_refused));
            }
            let refused = refused(&said, &places);
            ensure!(
                !refused.is_empty(),
                "the compiler refuses the woven tree, and names no mutant:\n{}",
                tail(&log)
            );
            let ids = refused.iter().filter_map(|number| woven.get(number));
            let ids: Vec<_> = ids.map(|mutant| mutant.id.as_str()).collect();
            println!(
                "round {round}: the compiler refuses {} of {}: {}",
                refused.len(),
                woven.len(),
                ids.join(" ")
            );
            woven.retain(|number, _| !refused.contains(number));
            all_refused.extend(ids);
        }
        bail!(
            "the compiler still refuses mutants after {ROUNDS} rounds; see {}",
            log.display()
        )
    }

    /// Makes the copy the woven tree; gives the places of the mutants in it, and keeps those that have one.
    fn write(
        workshop: &Workshop<'_>,
        woven: &mut BTreeMap<u32, &'m Mutant>,
    ) -> anyhow::Result<Places> {
        workshop.restore()?;
        let mut by_file: BTreeMap<&str, Vec<(u32, &Mutant)>> = BTreeMap::new();
        for (number, mutant) in woven.iter() {
            by_file
                .entry(&mutant.file)
                .or_default()
                .push((*number, mutant));
        }
        let mut places = Places::default();
        for (file, mutants) in by_file {
            let path = workshop.tree().join(file);
            let text = std::fs::read_to_string(&path).with_context(|| file.to_owned())?;
            let edit = |(number, mutant): &(u32, &'m Mutant)| {
                let edit = Edit::of(&text, &mutant.find, &mutant.replace);
                Some((*number, edit?))
            };
            let edits: Vec<_> = mutants.iter().filter_map(edit).collect();
            let done = weave(&text, &edits).with_context(|| file.to_owned())?;
            std::fs::write(&path, done.text).with_context(|| file.to_owned())?;
            places.of_file(file, done.lines);
        }
        let numbers = places.numbers();
        woven.retain(|number, _| numbers.contains(number));
        let table = workshop.tree().join(shaders::TABLE);
        let text = std::fs::read_to_string(&table)?;
        std::fs::write(&table, shaders::weave_table(&text))?;
        let source = workshop.tree().join("src");
        let module = MODULE.replace("{CHOSEN}", CHOSEN);
        let module = module.replace("{SHADERS}", SHADERS);
        std::fs::write(source.join("mutant.rs"), module)?;
        let library = source.join("lib.rs");
        let text = std::fs::read_to_string(&library)?;
        std::fs::write(&library, text + "\nmod mutant;\n")?;
        Ok(places)
    }

    /// Runs the tests of a mutant that stands in the build; `None` for one that must be tried alone.
    fn try_mutant(
        &self,
        workshop: &Workshop<'_>,
        mutant: &Mutant,
    ) -> anyhow::Result<Option<Vec<Row>>> {
        let log = workshop.fresh_log(&mutant.id)?;
        let start = Instant::now();
        let Some(chosen) = self.variable(workshop, mutant, &log)? else {
            return Ok(None);
        };
        let mut took = start.elapsed();
        let mut rows = Vec::new();
        for test in mutant.tests() {
            let Some(takes) = self.takes(workshop, test)? else {
                return Ok(None);
            };
            let limit = TEST_LIMIT.min(FOR_A_HUNG_ONE + 5 * takes);
            let row = Row::of(test, std::mem::take(&mut took), || {
                let ended = workshop.test_built(test, Some(&chosen), limit, &log)?;
                Ok(workshop.verdict(ended))
            })?;
            if row.verdict == Verdict::Survived {
                return Ok(None);
            }
            rows.push(row);
        }
        Ok(Some(rows))
    }

    /// What makes a process this mutant; `None` for one that must be tried alone.
    pub(crate) fn variable(
        &self,
        workshop: &Workshop<'_>,
        mutant: &Mutant,
        log: &Path,
    ) -> anyhow::Result<Option<Variable>> {
        if !mutant.also.is_empty() {
            return Ok(None);
        }
        if mutant.is_of_shader() {
            let _tree = lock(&self.shaders_tree);
            let tree = workshop.folder.join("shaders-tree");
            tree::copy_all(&workshop.original(), &tree)?;
            mutant.apply(&tree)?;
            let folder = shaders::compile(workshop, &tree, &mutant.id, log)?;
            return Ok(folder.map(|folder| (SHADERS, folder.into_os_string())));
        }
        let mut numbers = self.woven.iter();
        let number = numbers.find(|(_, other)| std::ptr::eq(**other, mutant));
        Ok(number.map(|(number, _)| (CHOSEN, number.to_string().into())))
    }

    /// How long a test takes with no mutant chosen; `None` of one that does not pass.
    fn takes(&self, workshop: &Workshop<'_>, test: &str) -> anyhow::Result<Option<Duration>> {
        let cell = Arc::clone(lock(&self.takes).entry(test.to_owned()).or_default());
        // Who else asks of this test waits for the answer.
        let mut known = lock(&cell);
        if let Some(takes) = *known {
            return Ok(takes);
        }
        let log = workshop.fresh_log(&format!("together-unmutated-{test}"))?;
        let start = Instant::now();
        let passes = workshop
            .test_built(test, None, TEST_LIMIT, &log)?
            .succeeded();
        if !passes {
            println!("{test} does not pass on the woven tree: its mutants are tried alone");
        }
        Ok(*known.insert(passes.then(|| start.elapsed())))
    }
}
