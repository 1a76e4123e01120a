//! Weaving: many mutants of one source file in one text.
//!
//! The body of a function that mutants edit becomes a choice between it and its edited copies, by the number of the
//! mutant that the process is. What is outside of a body, or in one whose copies cannot stand beside each other, is
//! left to a build of its own.

use proc_macro2::Span;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use syn::visit::{self, Visit};

/// What names the mutant that the process is, in the woven library.
pub(crate) const CHOICE: &str = "crate::mutant::number()";

/// An edit of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit<'a> {
    /// The bytes that are replaced.
    at: Range<usize>,
    by: &'a str,
}

impl<'a> Edit<'a> {
    /// Replaces the first `find` in `text`, as little of it as differs; `None` where there is none.
    pub(crate) fn of(text: &str, find: &str, replace: &'a str) -> Option<Self> {
        let start = text.find(find)?;
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| {
            let same = pairs.take_while(|(one, other)| one == other);
            same.map(|(one, _)| one.len_utf8()).sum::<usize>()
        };
        let before = same(&mut find.chars().zip(replace.chars()));
        let (find, replace) = (&find[before..], &replace[before..]);
        let after = same(&mut find.chars().rev().zip(replace.chars().rev()));
        let start = start + before;
        Some(Self {
            at: start..start + find.len() - after,
            by: &replace[..replace.len() - after],
        })
    }
}

/// The body of a function, from brace to brace.
#[derive(Debug)]
struct Body {
    at: Range<usize>,
    /// Copies of it can stand beside each other: it is no constant's, and all its copies give one type.
    is_divisible: bool,
}

#[derive(Debug, Default)]
struct Bodies(Vec<Body>);

impl Bodies {
    fn push(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let bytes = |span: Span| span.byte_range();
        let braces = block.brace_token.span;
        let gives_one_type = match &signature.output {
            syn::ReturnType::Default => true,
            syn::ReturnType::Type(_, of) => !names_impl(of),
        };
        self.0.push(Body {
            at: bytes(braces.open()).start..bytes(braces.close()).end,
            is_divisible: signature.constness.is_none() && gives_one_type,
        });
    }

    /// The innermost around an edit, its braces not touched.
    fn around(&self, edit: &Edit<'_>) -> Option<&Body> {
        let inside = |body: &&Body| body.at.start < edit.at.start && edit.at.end < body.at.end;
        let all = self.0.iter().filter(inside);
        all.min_by_key(|body| body.at.len())
    }
}

/// Whether a type hides another one, `impl Iterator`.
fn names_impl(of: &syn::Type) -> bool {
    struct Finds(bool);
    impl Visit<'_> for Finds {
        fn visit_type_impl_trait(&mut self, _: &syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut finds = Finds(false);
    finds.visit_type(of);
    finds.0
}

impl<'ast> Visit<'ast> for Bodies {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.push(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.push(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.push(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// A text with mutants in it.
#[derive(Debug, Default)]
pub(crate) struct Woven {
    pub(crate) text: String,
    /// The lines, from 1, on which a mutant's copy stands.
    pub(crate) lines: Vec<(u32, Range<usize>)>,
}

/// Weaves the edits that can be into the text, each under its number.
///
/// # Errors
/// The text is no Rust.
pub(crate) fn weave(text: &str, edits: &[(u32, Edit<'_>)]) -> syn::Result<Woven> {
    let mut bodies = Bodies::default();
    bodies.visit_file(&syn::parse_file(text)?);
    let mut by_body: BTreeMap<(usize, usize), Vec<(u32, String)>> = BTreeMap::new();
    for (number, edit) in edits {
        let Some(body) = bodies.around(edit).filter(|body| body.is_divisible) else {
            continue;
        };
        let copy = [
            &text[body.at.start..edit.at.start],
            edit.by,
            &text[edit.at.end..body.at.end],
        ];
        let copy = copy.concat();
        if syn::parse_str::<syn::Block>(&copy).is_ok() {
            let of_body = by_body.entry((body.at.start, body.at.end)).or_default();
            of_body.push((*number, copy));
        }
    }
    let mut woven = Woven::default();
    let mut done = 0;
    // A body that has another one's mutants inside of it goes with those alone: its own begins before `done`
    // or ends after the next.
    let inner: Vec<_> = by_body.keys().copied().collect();
    for ((start, end), copies) in by_body {
        if inner
            .iter()
            .any(|(other, ends)| start < *other && *ends < end)
        {
            continue;
        }
        woven.text.push_str(&text[done..start]);
        woven.text.push_str("{ match ");
        woven.text.push_str(CHOICE);
        woven.text.push_str(" {\n");
        for (number, copy) in copies {
            let first = woven.text.matches('\n').count() + 1;
            let last = first + copy.matches('\n').count();
            woven.lines.push((number, first..last + 1));
            let _ = writeln!(woven.text, "{number} => {copy}");
        }
        woven.text.push_str("_ => ");
        woven.text.push_str(&text[start..end]);
        woven.text.push_str("\n} }");
        done = end;
    }
    woven.text.push_str(&text[done..]);
    Ok(woven)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
struct S;
const fn two() -> u32 { 2 }
impl S {
    fn one(&self) -> u32 {
        let a = 1;
        a
    }
    fn all(&self) -> impl Iterator<Item = u32> { [1].into_iter() }
}
fn outer() -> u32 {
    fn inner() -> u32 { 7 }
    inner() + 1
}
";

    fn woven(edits: &[(&str, &str)]) -> Woven {
        let edits: Vec<_> = (1..)
            .zip(edits)
            .map(|(number, (find, by))| (number, Edit::of(TEXT, find, by).unwrap()))
            .collect();
        weave(TEXT, &edits).unwrap()
    }

    fn numbers(woven: &Woven) -> Vec<u32> {
        woven.lines.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn an_edit_is_as_little_as_differs() {
        let edit = Edit::of("f(a, b); g()", "f(a, b);", "f(a, c);").unwrap();
        assert_eq!((edit.at, edit.by), (5..6, "c"));
        let gone = Edit::of("f(); f(); g()", "f(); g()", "g()").unwrap();
        assert_eq!((gone.at, gone.by), (5..10, ""));
        let more = Edit::of("aa", "aa", "aaa").unwrap();
        assert_eq!((more.at, more.by), (2..2, "a"));
        assert_eq!(Edit::of("f()", "g()", ""), None);
    }

    #[test]
    fn a_body_becomes_a_choice() {
        let woven = woven(&[
            ("let a = 1;", "let a = 5;"),
            ("        a\n", "        a + 1\n"),
        ]);
        assert_eq!(numbers(&woven), [1, 2]);
        assert!(syn::parse_file(&woven.text).is_ok());
        let line = |number: usize| woven.text.lines().nth(number - 1).unwrap();
        assert!(
            woven.lines[0]
                .1
                .clone()
                .any(|number| line(number).contains("let a = 5;"))
        );
        assert!(
            woven.lines[1]
                .1
                .clone()
                .any(|number| line(number).contains("a + 1"))
        );
        assert!(
            woven
                .text
                .contains("_ => {\n        let a = 1;\n        a\n    }\n} }")
        );
    }

    #[test]
    fn what_cannot_stand_beside_others_is_left_alone() {
        let left = [
            ("{ 2 }", "{ 3 }"),
            ("struct S;", "struct S();"),
            ("[1].into_iter()", "[2].into_iter()"),
            ("let a = 1;", "let a = 1; {"),
        ];
        let woven = woven(&left);
        assert!(woven.lines.is_empty());
        assert_eq!(woven.text, TEXT);
    }

    #[test]
    fn of_bodies_in_each_other_the_inner_goes() {
        assert_eq!(numbers(&woven(&[("{ 7 }", "{ 8 }"), ("+ 1", "+ 2")])), [1]);
        assert_eq!(numbers(&woven(&[("inner() + 1", "inner() + 2")])), [1]);
    }
}
