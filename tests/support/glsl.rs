//! What the twins under `shaders/abi` say: their structures and their constants.
//!
//! A small reader for the little GLSL that stands there: buffer references in scalar layout, of
//! `uint` and `uint64_t` and arrays of them, and constants of integer expressions. It panics with
//! a sentence on anything else, so that nothing goes unread.

use std::collections::BTreeMap;
use std::path::Path;

/// One member of a buffer reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) offset: u64,
}

impl Member {
    /// Whether it only keeps a place.
    pub(crate) fn is_padding(&self) -> bool {
        ["pad", "reserved"].iter().any(|p| self.name.starts_with(p))
    }
}

/// A buffer reference, in scalar layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Structure {
    pub(crate) members: Vec<Member>,
    pub(crate) bytes: u64,
}

/// All of `shaders/abi`.
#[derive(Debug)]
pub(crate) struct Abi {
    text: String,
}

impl Abi {
    pub(crate) fn read() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/abi");
        let mut text = String::new();
        for entry in folder.read_dir().expect("shaders/abi is there") {
            let path = entry.expect("the folder can be read").path();
            let source = std::fs::read_to_string(&path).expect("a source can be read");
            for line in source.lines() {
                text.push_str(line.split("//").next().unwrap_or_default());
                text.push('\n');
            }
        }
        Self { text }
    }

    /// Every buffer reference, by name.
    pub(crate) fn structures(&self) -> BTreeMap<&str, Structure> {
        let blocks = self.text.split("buffer_reference,").skip(1);
        blocks
            .map(|block| {
                let (layout, rest) = block.split_once(')').expect("a layout ends");
                assert!(layout.contains("scalar"), "layout({layout}) is not scalar");
                let (head, rest) = rest.split_once('{').expect("a block has members");
                let (body, _) = rest.split_once('}').expect("a block ends");
                let name = head.trim().strip_prefix("buffer ").expect("a buffer");
                (name.trim(), structure(body))
            })
            .collect()
    }

    /// Every constant, by name, with its value cut to its type.
    pub(crate) fn constants(&self) -> BTreeMap<&str, u64> {
        let mut definitions = BTreeMap::new();
        for part in self.text.split("\nconst ").skip(1) {
            let (definition, _) = part.split_once(';').expect("a constant ends");
            let (head, expression) = definition.split_once('=').expect("a constant has a value");
            let (kind, name) = head.trim().split_once(' ').expect("type and name");
            definitions.insert(name.trim(), (kind, expression));
        }
        definitions
            .keys()
            .map(|name| (*name, value(name, &definitions)))
            .collect()
    }
}

fn structure(body: &str) -> Structure {
    let mut bytes = 0;
    let mut members = Vec::new();
    for line in body.split(';').map(str::trim).filter(|l| !l.is_empty()) {
        let (kind, name) = line.split_once(' ').expect("type and name");
        let size = match kind {
            "uint" => 4,
            "uint64_t" => 8,
            other => panic!("a member of type {other}"),
        };
        let (name, count) = match name.trim().split_once('[') {
            Some((name, count)) => (
                name,
                count
                    .trim_end_matches(']')
                    .parse()
                    .expect("a plain array length"),
            ),
            None => (name.trim(), 1),
        };
        // Scalar layout: every member at the next multiple of its own size.
        bytes = u64::next_multiple_of(bytes, size);
        members.push(Member {
            name: name.to_owned(),
            offset: bytes,
        });
        bytes += size * count;
    }
    Structure { members, bytes }
}

type Definitions<'a> = BTreeMap<&'a str, (&'a str, &'a str)>;

fn value(name: &str, definitions: &Definitions<'_>) -> u64 {
    let (kind, expression) = definitions
        .get(name)
        .unwrap_or_else(|| panic!("{name} is no constant of shaders/abi"));
    let tokens = tokens(expression);
    let mut reader = Reader {
        tokens: &tokens,
        definitions,
    };
    let value = reader.sum();
    assert!(
        reader.tokens.is_empty(),
        "{name}: {:?} is left",
        reader.tokens
    );
    match *kind {
        "uint" => value & 0xffff_ffff,
        "uint64_t" => value,
        other => panic!("{name} is of type {other}"),
    }
}

fn tokens(expression: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Sums of products of numbers, names, casts, brackets and complements.
struct Reader<'a, 't> {
    tokens: &'t [&'a str],
    definitions: &'t Definitions<'a>,
}

impl Reader<'_, '_> {
    fn takes(&mut self, wanted: &str) -> bool {
        let is_next = self.tokens.first() == Some(&wanted);
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }

    fn sum(&mut self) -> u64 {
        let mut sum = self.product();
        loop {
            if self.takes("+") {
                sum = sum.wrapping_add(self.product());
            } else if self.takes("-") {
                sum = sum.wrapping_sub(self.product());
            } else {
                return sum;
            }
        }
    }

    fn product(&mut self) -> u64 {
        let mut product = self.factor();
        while self.takes("*") {
            product = product.wrapping_mul(self.factor());
        }
        product
    }

    fn factor(&mut self) -> u64 {
        if self.takes("~") {
            return !self.factor();
        }
        // A cast is a bracket: no value here is too wide for its type.
        if self.takes("(") || self.takes("uint64_t") || self.takes("uint") {
            self.takes("(");
            let value = self.sum();
            assert!(self.takes(")"), "a bracket closes before {:?}", self.tokens);
            return value;
        }
        let (token, rest) = self.tokens.split_first().expect("an operand");
        self.tokens = rest;
        if !token.starts_with(|c: char| c.is_ascii_digit()) {
            return value(token, self.definitions);
        }
        let digits = token.trim_end_matches(['u', 'l']);
        match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        }
        .unwrap_or_else(|e| panic!("{token}: {e}"))
    }
}
