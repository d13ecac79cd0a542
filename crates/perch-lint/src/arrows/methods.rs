// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrows that calls make: a type's methods may be defined in several files, and a file that calls
//! one needs the file that defines it, though no import says so.
//!
//! `self.name()` is looked up in the type that the `impl` block is of. For other receivers the type
//! is not known; such a call counts if only one type of all crates has a method of that name, and
//! the standard library's types have none.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Crate, Definition, Module, Path};
use crate::lexer::{Kind, Token};

/// Methods of a crate by their type and by their name.
#[derive(Default)]
pub struct Methods {
    /// Type and function, to the file of the `impl` block.
    by_type: BTreeMap<(Definition, String), String>,
    /// Functions that are called on values, to the types that have one.
    by_name: BTreeMap<String, BTreeSet<Option<Definition>>>,
}

/// A file that is used, the line that does so and the name it uses.
type Use = (String, usize, String);

impl Methods {
    /// The methods that the crate's `impl` blocks and traits define.
    pub fn of(krate: &Crate<'_>) -> Self {
        let mut methods = Self::default();
        for (path, module) in &krate.modules {
            for block in &module.items.impls {
                let of = krate
                    .resolve(path, &block.of)
                    .map(|(definition, _)| definition);
                let its_trait = block.for_trait.as_ref();
                let local = its_trait.and_then(|words| krate.resolve(path, words));
                for (name, on_value) in &block.functions {
                    if let (Some(of), None) = (&of, its_trait) {
                        let key = (of.clone(), name.clone());
                        methods.by_type.insert(key, module.file.clone());
                    }
                    // A method of this crate's trait is the trait's, which has a block of its own.
                    if *on_value && local.is_none() {
                        let owner = of.clone().filter(|_| its_trait.is_none());
                        methods
                            .by_name
                            .entry(name.clone())
                            .or_default()
                            .insert(owner);
                    }
                }
            }
        }
        methods
    }

    /// The names of functions that are called on values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Forget the names that are not `ours` alone, so that a call of one says nothing.
    pub fn keep(&mut self, ours: impl Fn(&str) -> bool) {
        self.by_name.retain(|name, _| ours(name));
    }

    /// The file that defines the function `name` of a type.
    pub fn of_type(&self, of: &Definition, name: &str) -> Option<String> {
        self.by_type.get(&(of.clone(), name.to_owned())).cloned()
    }

    /// The uses that calls in the blocks and functions of a module make.
    pub fn calls(
        &self,
        krate: &Crate<'_>,
        path: &Path,
        module: &Module,
        tokens: &[Token<'_>],
    ) -> Vec<Use> {
        let mut found = Vec::new();
        for range in &module.items.code {
            let block = module
                .items
                .impls
                .iter()
                .find(|block| range.contains(&block.body.start) && block.body.end <= range.end);
            let of = block
                .and_then(|block| krate.resolve(path, &block.of))
                .map(|(of, _)| of);
            for at in range.clone() {
                found.extend(self.call(of.as_ref(), tokens, at));
            }
        }
        found
    }

    /// The use that the token at `at` makes, if it is the name of a method that is called.
    fn call(&self, of: Option<&Definition>, tokens: &[Token<'_>], at: usize) -> Option<Use> {
        let name = tokens[at];
        let called = tokens
            .get(at + 1)
            .is_some_and(|next| next.is('(') || next.is(':'));
        if name.kind != Kind::Word || !called || at < 2 {
            return None;
        }
        let on = |word| tokens[at - 2].is_word(word) && (at < 3 || !tokens[at - 3].is('.'));
        let own = (tokens[at - 1].is('.') && on("self"))
            || (at > 2 && tokens[at - 1].is(':') && tokens[at - 3].is_word("Self"));
        if own {
            let file = self.of_type(of?, name.text)?;
            return Some((file, name.line, name.text.to_owned()));
        }
        if !tokens[at - 1].is('.') || OTHERS.contains(&name.text) {
            return None;
        }
        let types = self.by_name.get(name.text)?;
        let mut types = types.iter();
        let (Some(Some(only)), None) = (types.next(), types.next()) else {
            return None;
        };
        let file = self.of_type(only, name.text)?;
        Some((file, name.line, name.text.to_owned()))
    }
}

/// Methods that the standard library's types have too: a call of one says nothing about ours.
const OTHERS: [&str; 164] = [
    "abs",
    "add",
    "advance",
    "all",
    "and",
    "and_then",
    "any",
    "append",
    "as_bytes",
    "as_deref",
    "as_mut",
    "as_ref",
    "as_slice",
    "as_str",
    "back",
    "borrow",
    "bytes",
    "chain",
    "chars",
    "checked_add",
    "checked_sub",
    "chunks",
    "clamp",
    "clear",
    "clone",
    "cloned",
    "cmp",
    "collect",
    "concat",
    "contains",
    "contains_key",
    "copied",
    "count",
    "dedup",
    "display",
    "div",
    "drain",
    "ends_with",
    "entry",
    "enumerate",
    "env",
    "eq",
    "exists",
    "expect",
    "extend",
    "extend_from_slice",
    "fill",
    "filter",
    "find",
    "find_map",
    "finish",
    "first",
    "flat_map",
    "flush",
    "fold",
    "from_str",
    "front",
    "get",
    "get_mut",
    "get_or_insert_with",
    "hash",
    "id",
    "index",
    "insert",
    "into",
    "into_iter",
    "is_empty",
    "is_none",
    "is_some",
    "is_some_and",
    "iter",
    "iter_mut",
    "join",
    "key",
    "keys",
    "kill",
    "kind",
    "last",
    "len",
    "line",
    "lines",
    "load",
    "lock",
    "lower",
    "map",
    "map_err",
    "map_or",
    "max",
    "metadata",
    "min",
    "mul",
    "name",
    "next",
    "ok",
    "ok_or",
    "open",
    "or",
    "parent",
    "parse",
    "partial_cmp",
    "path",
    "peek",
    "permissions",
    "pop",
    "pop_back",
    "pop_front",
    "position",
    "push",
    "push_back",
    "push_front",
    "range",
    "read",
    "recv",
    "remove",
    "replace",
    "reset",
    "resize",
    "retain",
    "rev",
    "reverse",
    "rposition",
    "run",
    "saturating_add",
    "saturating_sub",
    "seek",
    "send",
    "set",
    "skip",
    "sort",
    "sort_by",
    "sort_by_key",
    "spawn",
    "splice",
    "split",
    "split_at",
    "start",
    "starts_with",
    "status",
    "stderr",
    "stdin",
    "stdout",
    "step",
    "store",
    "sub",
    "success",
    "sum",
    "swap",
    "take",
    "then",
    "to_owned",
    "to_string",
    "to_vec",
    "total_cmp",
    "trim",
    "truncate",
    "unwrap",
    "unwrap_or",
    "upper",
    "values",
    "wait",
    "windows",
    "with",
    "write",
    "zip",
];
