// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrows between the files of a crate. A path (`super::wake::Waker`, `crate::time::Time`) is
//! followed through modules and imports to the file that defines its name, so that a file which
//! only passes names on has no arrows of its own. Code that is compiled for tests only makes none.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::arrow::Arrow;
use super::items::{self, Import, Items};
use super::methods::Methods;
use crate::Tree;
use crate::lexer::{Kind, Language, Token, code};
use crate::tree::folder_of;

/// A module by its path from the crate's root.
pub type Path = Vec<String>;

/// A module and where it stands.
pub struct Module {
    /// The file that holds it.
    pub file: String,
    /// Its items.
    pub items: Items,
}

/// All modules of a crate, with the tokens of their files.
pub struct Crate<'t> {
    /// Modules by their path.
    pub modules: BTreeMap<Path, Module>,
    /// Tokens by their file.
    pub tokens: BTreeMap<String, Vec<Token<'t>>>,
}

/// The definition that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// The file that holds it.
    pub file: String,
    /// Its name, which together with the file identifies the type of a method.
    pub name: String,
}

/// The arrows inside of each of the crates in `crates/`: those of its library and of its program.
pub fn arrows(tree: &Tree, names: &[String]) -> Vec<Arrow> {
    let mut crates = Vec::new();
    for name in names {
        for root in ["lib.rs", "main.rs"] {
            let root = format!("crates/{name}/src/{root}");
            if tree.is_file(&root) {
                let krate = Crate::read(tree, &root);
                let methods = Methods::of(&krate);
                crates.push((krate, methods));
            }
        }
    }
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for name in crates.iter().flat_map(|(_, methods)| methods.names()) {
        *owners.entry(name.to_owned()).or_default() += 1;
    }
    let mut found = Vec::new();
    for (krate, methods) in &mut crates {
        methods.keep(|name| owners[name] == 1);
        for (path, module) in &krate.modules {
            found.extend(krate.arrows_of(path, module, methods));
        }
    }
    found
}

impl<'t> Crate<'t> {
    /// Read the crate whose first file is `root`, and all that it declares.
    pub fn read(tree: &'t Tree, root: &str) -> Self {
        let mut krate = Self {
            modules: BTreeMap::new(),
            tokens: BTreeMap::new(),
        };
        krate.read_file(tree, Vec::new(), root);
        krate
    }

    fn read_file(&mut self, tree: &'t Tree, path: Path, file: &str) {
        let Some(text) = tree.text(file) else { return };
        let tokens = code(text, Language::Rust);
        let items = items::items(&tokens, 0..tokens.len());
        self.tokens.insert(file.to_owned(), tokens);
        self.add(tree, path, file, items);
    }

    fn add(&mut self, tree: &'t Tree, path: Path, file: &str, mut items: Items) {
        for child in &items.files {
            let candidates = child_files(file, &path, child);
            if let Some(found) = candidates
                .into_iter()
                .find(|candidate| tree.is_file(candidate))
            {
                self.read_file(tree, joined(&path, child), &found);
            }
        }
        for (child, inside) in std::mem::take(&mut items.inline) {
            self.add(tree, joined(&path, &child), file, inside);
        }
        self.modules.insert(
            path,
            Module {
                file: file.to_owned(),
                items,
            },
        );
    }

    /// The definition that `words`, written in the module `from`, lead to, and the number of words
    /// that name it. `None` for other crates' names and for modules.
    pub fn resolve(&self, from: &Path, words: &[String]) -> Option<(Definition, usize)> {
        self.follow(from, words, 8)
    }

    /// As [`Self::resolve`]; `turns` bounds the imports on the way, which may form a circle.
    fn follow(&self, from: &Path, words: &[String], turns: usize) -> Option<(Definition, usize)> {
        let turns = turns.checked_sub(1)?;
        let mut at = from.clone();
        let mut taken = 0;
        while let Some(word) = words.get(taken) {
            match word.as_str() {
                "crate" if taken == 0 => at.clear(),
                "self" => {}
                "super" => {
                    at.pop()?;
                }
                name => {
                    let child = joined(&at, name);
                    if !self.modules.contains_key(&child) {
                        let (definition, more) = self.item(&at, &words[taken..], turns)?;
                        return Some((definition, taken + more));
                    }
                    at = child;
                }
            }
            taken += 1;
        }
        None
    }

    /// The definition of the first of `words` among the items of the module `at`.
    fn item(&self, at: &Path, words: &[String], turns: usize) -> Option<(Definition, usize)> {
        let module = self.modules.get(at)?;
        let name = words.first()?;
        if module.items.defined.contains(name) {
            let definition = Definition {
                file: module.file.clone(),
                name: name.clone(),
            };
            return Some((definition, 1));
        }
        if let Some(import) = module
            .items
            .imports
            .iter()
            .find(|import| import.name == *name)
        {
            let mut whole = import.path.clone();
            whole.extend_from_slice(&words[1..]);
            let (definition, taken) = self.follow(at, &whole, turns)?;
            return Some((
                definition,
                (taken + 1).saturating_sub(import.path.len()).max(1),
            ));
        }
        module
            .items
            .imports
            .iter()
            .filter(|import| import.name == "*")
            .find_map(|import| {
                let mut whole = import.path.clone();
                whole.extend_from_slice(words);
                let (definition, taken) = self.follow(at, &whole, turns)?;
                Some((definition, taken.saturating_sub(import.path.len()).max(1)))
            })
    }

    fn arrows_of(&self, path: &Path, module: &Module, methods: &Methods) -> Vec<Arrow> {
        let tokens = &self.tokens[&module.file];
        let mut uses = Vec::new();
        for import in &module.items.imports {
            // A name that is only passed on is not used here.
            if !import.public || is_used(tokens, &module.items.code, &import.name) {
                uses.extend(self.by_import(path, import));
            }
        }
        for range in &module.items.code {
            uses.extend(self.by_paths(path, &tokens[range.clone()], methods));
        }
        uses.extend(methods.calls(self, path, module, tokens));
        uses.extend(self.by_globs(path, module, tokens));
        let arrows = uses.into_iter().filter(|(to, ..)| *to != module.file);
        arrows
            .map(|(to, line, name)| Arrow {
                from: module.file.clone(),
                to,
                line,
                name,
            })
            .collect()
    }

    fn by_import(&self, path: &Path, import: &Import) -> Option<(String, usize, String)> {
        // An import of the module's own name leads to itself and not in a circle.
        let (definition, _) = self.resolve(path, &import.path)?;
        Some((definition.file, import.line, import.name.clone()))
    }

    /// Paths in code, and imports inside of functions.
    fn by_paths(
        &self,
        path: &Path,
        tokens: &[Token<'_>],
        methods: &Methods,
    ) -> Vec<(String, usize, String)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let line = tokens[at].line;
            if tokens[at].is_word("use") {
                let end = (at..tokens.len())
                    .find(|end| tokens[*end].is(';'))
                    .unwrap_or(at);
                let inner = items::imports(&tokens[at + 1..end.max(at + 1)], false);
                found.extend(
                    inner
                        .iter()
                        .filter_map(|import| self.by_import(path, import)),
                );
                at = end + 1;
                continue;
            }
            let begins = tokens[at].kind == Kind::Word
                && items::goes_on(tokens, at + 1)
                && !(at > 0 && (tokens[at - 1].is(':') && at > 1 && tokens[at - 2].is(':')));
            if !begins {
                at += 1;
                continue;
            }
            let words = items::path(tokens, &mut at);
            let Some((definition, taken)) = self.resolve(path, &words) else {
                continue;
            };
            let name = words.join("::");
            if let Some(called) = words.get(taken) {
                found.extend(
                    methods
                        .of_type(&definition, called)
                        .map(|file| (file, line, name.clone())),
                );
            }
            found.push((definition.file, line, name));
        }
        found
    }

    /// Names that come in by `use other::*`.
    fn by_globs(
        &self,
        path: &Path,
        module: &Module,
        tokens: &[Token<'_>],
    ) -> Vec<(String, usize, String)> {
        if !module.items.imports.iter().any(|import| import.name == "*") {
            return Vec::new();
        }
        let mut seen = BTreeSet::new();
        let words = module
            .items
            .code
            .iter()
            .flat_map(|range| &tokens[range.clone()]);
        let words = words.filter(|token| token.kind == Kind::Word);
        words
            .filter(|token| seen.insert(token.text))
            .filter_map(|token| {
                let (definition, _) = self.resolve(path, &[token.text.to_owned()])?;
                Some((definition.file, token.line, token.text.to_owned()))
            })
            .collect()
    }
}

/// Returns whether a name occurs in the code of a module.
fn is_used(tokens: &[Token<'_>], code: &[Range<usize>], name: &str) -> bool {
    code.iter()
        .flat_map(|range| &tokens[range.clone()])
        .any(|token| token.is_word(name))
}

fn joined(path: &Path, name: &str) -> Path {
    let mut path = path.clone();
    path.push(name.to_owned());
    path
}

/// The files in which the module `child`, declared in `file` by the module `path`, may be.
fn child_files(file: &str, path: &Path, child: &str) -> Vec<String> {
    let folder = folder_of(file);
    let stem = file.rsplit('/').next().unwrap_or("");
    let mut base = if ["lib.rs", "main.rs", "mod.rs"].contains(&stem) {
        folder.to_owned()
    } else {
        file.trim_end_matches(".rs").to_owned()
    };
    // A module in braces has a folder of its own.
    if let Some(own) = path
        .last()
        .filter(|own| !base.ends_with(own.as_str()) && !path.is_empty())
    {
        if ![".rs", "/mod.rs"]
            .iter()
            .any(|end| file.ends_with(&format!("{own}{end}")))
        {
            base = format!("{base}/{own}");
        }
    }
    vec![
        format!("{base}/{child}.rs"),
        format!("{base}/{child}/mod.rs"),
    ]
}
