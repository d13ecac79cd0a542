// SPDX-License-Identifier: GPL-2.0-or-later
//! Schedulers of others: their BPF C, compiled natively, and in place of their loader a description
//! of what it would set.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perch_file::{FileError, Kind};
use perch_machine::Machine;
use perch_policy::Topology;
use perch_sim::Outside;
use sha2::{Digest, Sha256};

use crate::abi::{Callbacks, MapType};
use crate::class::{Loader, Scheduler};
use crate::compile::{CompileError, compile};
use crate::core::Core;
use crate::costs::Counted;
use crate::describe::{Description, Shape};
use crate::maps::Maps;
use crate::object::{Object, ObjectError};

/// The descriptions that perch has, by the scheduler's name.
const KNOWN: [(&str, &str); 5] = [
    ("simple", include_str!("../schedulers/simple.toml")),
    ("central", include_str!("../schedulers/central.toml")),
    ("cosmos", include_str!("../schedulers/cosmos.toml")),
    ("bpfland", include_str!("../schedulers/bpfland.toml")),
    ("flash", include_str!("../schedulers/flash.toml")),
];

/// What a file that [`Package::write`] wrote ends with, behind the length of the description and the
/// [`interface`].
const MAGIC: &[u8; 8] = b"PERCHSCX";

/// Tells the structures that a shared object shares with this perch from those of another version.
fn interface() -> [u8; 8] {
    let digest = Sha256::digest(include_str!("../native/abi.h"));
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// The reason why a scheduler cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// Its source cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// A file cannot be written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The description makes no sense, or sets what the scheduler does not have.
    #[error("{path}: {reason}", path = path.display())]
    Description {
        /// The description, or the file that has it.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The shared object cannot be used.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> ForeignError {
    let path = path.to_path_buf();
    move |error| ForeignError::File { path, error }
}

/// A scheduler that is ready to run: its shared object and its description.
#[derive(Clone, Debug)]
pub struct Package {
    /// The scheduler's short name.
    pub name: String,
    /// What is worth knowing about how it was made, in sentences.
    pub notes: Vec<String>,
    object: Vec<u8>,
    /// The sizes of what the object exports.
    sizes: Sizes,
    description: Description,
    text: String,
}

impl Package {
    /// Compiles the scheduler at `path`, its folder or the C file of its program. `set` is the file that
    /// describes what its loader sets; without one it is perch's own description of a scheduler of
    /// this name, if there is one.
    ///
    /// # Errors
    /// What of the source or the description cannot be used.
    pub fn build(path: &Path, set: Option<&Path>) -> Result<Package, ForeignError> {
        let compiled = compile(path)?;
        let mut notes = Vec::new();
        let (place, text) = match set {
            Some(file) => {
                let text = perch_file::text(file, Kind::SCHEDULER)?;
                (file.to_path_buf(), text)
            }
            None => {
                let known = KNOWN.iter().find(|(name, _)| *name == compiled.name);
                if known.is_none() {
                    notes.push(format!(
                        "perch has no description of what the loader of {} sets, so its \
                         variables stay as its source has them: --set FILE gives one",
                        compiled.name
                    ));
                }
                let text = known.map_or("", |(_, text)| text).to_string();
                (PathBuf::from(format!("{}.toml", compiled.name)), text)
            }
        };
        let refuse = |reason| ForeignError::Description { path: place.clone(), reason };
        let mut description = Description::parse(&text).map_err(refuse)?;
        let sizes = symbols(&compiled.object).map_err(refuse)?;
        let lacks = description.lacks(&sizes);
        if set.is_some()
            && let Some(first) = lacks.first()
        {
            return Err(refuse(format!(
                "the scheduler has no variable, program or map {first} that is not static"
            )));
        }
        // Perch's own descriptions are of one version of each scheduler.
        for name in lacks {
            notes.push(format!(
                "this version of {} has no {name}, which perch's description sets",
                compiled.name
            ));
            description.forget(&name);
        }
        Ok(Package {
            name: compiled.name,
            notes,
            object: compiled.object,
            sizes,
            description,
            text,
        })
    }

    /// Reads a file that [`Package::write`] wrote.
    ///
    /// # Errors
    /// The file is none of those.
    pub fn read(path: &Path) -> Result<Package, ForeignError> {
        let bytes = perch_file::bytes(path, Kind::SCHEDULER)?;
        let refuse = |reason: &str| ForeignError::Description {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        };
        let unknown =
            || refuse("expected a file that `perch scx build` wrote, or a scheduler's source");
        let stamped = bytes.strip_suffix(MAGIC).ok_or_else(unknown)?;
        let rest = stamped.strip_suffix(&interface()).ok_or_else(|| {
            refuse("another version of perch built it: build it anew with `perch scx build`")
        })?;
        let parts = split(rest).ok_or_else(unknown)?;
        let text = String::from_utf8(parts.1.to_vec())
            .map_err(|_| refuse("its description is not UTF-8"))?;
        let mut description = Description::parse(&text).map_err(|reason| refuse(&reason))?;
        let sizes = symbols(parts.0).map_err(|reason| refuse(&reason))?;
        for name in description.lacks(&sizes) {
            description.forget(&name);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Package {
            name: name.into_owned(),
            notes: Vec::new(),
            object: parts.0.to_vec(),
            sizes,
            description,
            text,
        })
    }

    /// Reads the file that `perch scx build` wrote at `path`, or builds the scheduler there.
    ///
    /// # Errors
    /// As of the two.
    pub fn open(path: &Path) -> Result<Package, ForeignError> {
        let source = path.is_dir() || path.to_string_lossy().ends_with(".c");
        if source { Package::build(path, None) } else { Package::read(path) }
    }

    /// Writes a shared object that has the description behind it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ForeignError> {
        let text = self.text.as_bytes();
        let len = (text.len() as u64).to_le_bytes();
        let bytes = [&self.object, text, &len, &interface(), MAGIC].concat();
        fs::write(path, bytes).map_err(file_error(path))
    }

    /// Returns the scheduler for the scenarios of a comparison, known by these words.
    ///
    /// # Errors
    /// The dynamic linker refuses it.
    pub fn outside(self, words: String) -> Result<Outside, ForeignError> {
        // Once now, so that what is wrong is said before any run.
        Object::load(&self.object)?;
        let image = [&self.object, self.text.as_bytes()].concat();
        let package = Arc::new(self);
        let make = move |_: &Machine, topology: &Arc<Topology>| {
            let object = Object::load(&package.object).map_err(|error| error.to_string())?;
            let loader = ForeignLoader { package: package.clone(), shape: Shape::new(topology) };
            Ok(Box::new(Scheduler::new(object, Box::new(loader))) as _)
        };
        Ok(Outside::new(words, image, make))
    }
}

/// The object and the description of a file, whose end is their length.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, len) = bytes.split_last_chunk::<8>()?;
    let at = rest.len().checked_sub(u64::from_le_bytes(*len) as usize)?;
    Some(rest.split_at(at))
}

/// Bytes of what a shared object exports, by name.
type Sizes = HashMap<String, u64>;

/// The names and sizes of what a shared object exports.
fn symbols(object: &[u8]) -> Result<Sizes, String> {
    use object::{Object as _, ObjectSymbol as _};
    let file = object::File::parse(object).map_err(|error| error.to_string())?;
    let all = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    Ok(all.filter_map(|symbol| Some((symbol.name().ok()?.to_string(), symbol.size()))).collect())
}

/// Instructions of the callbacks, as long as nobody has counted the scheduler's own: about what
/// perch's are without its own search.
const COUNTED: Counted = Counted {
    select_cpu: 600,
    select_prev: 600,
    select_here: 600,
    enqueue: 300,
    dispatch: 100,
    running: 50,
    stopping: 100,
    tick: 50,
    queued: 50,
    init_task: 500,
    exit_task: 100,
    enable: 50,
    update_idle: 50,
    timer: 1000,
    rare: 100,
};

/// Does what the scheduler's own loader does, by the description.
struct ForeignLoader {
    package: Arc<Package>,
    shape: Shape,
}

impl Loader for ForeignLoader {
    fn ops(&self) -> &str {
        let ops = &self.package.description.ops;
        ops.name.as_deref().unwrap_or_default()
    }

    fn counted(&self) -> Counted {
        COUNTED
    }

    fn prepare(
        &mut self,
        object: &Object,
        callbacks: &mut Callbacks,
        maps: &mut Maps,
    ) -> Result<(), ObjectError> {
        let description = &self.package.description;
        for (name, value) in &description.set {
            let at = object.variable(name)?;
            let size = self.package.sizes.get(name).copied().unwrap_or_default() as usize;
            let bytes = (value.bytes(&self.shape, size))
                .map_err(|reason| ObjectError::Set(name.clone(), reason))?;
            // SAFETY: the program's variables are writable natively, and the symbol is this long.
            unsafe { at.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        for (name, &entries) in &description.max_entries {
            let at = object.variable(name)? as usize;
            maps.set_max_entries(at, entries);
        }
        if let Some(flags) = &description.ops.flags {
            callbacks.flags = (self.shape.flags(flags))
                .map_err(|reason| ObjectError::Set("flags".to_string(), reason))?;
        }
        if let Some(ms) = description.ops.timeout_ms {
            callbacks.timeout_ms = ms;
        }
        Ok(())
    }

    fn start(&mut self, object: &Object, core: &Core) -> Result<(), String> {
        let description = &self.package.description;
        for fill in &description.fill {
            let map = object.variable(&fill.map).map_err(|e| e.to_string())? as usize;
            // BPF_MAP_TYPE_HASH, whose sizes are those of what comes into it first.
            let is = MapType { kind: 1, max_entries: u32::MAX, key_size: 4, value_size: 4 };
            for place in self.shape.places(fill.each.as_deref())? {
                let number = |word| self.shape.word(word, place).map(|n| n as i32);
                let (key, value) = (number(&fill.key)?, number(&fill.value)?);
                let (key, value) = (key.to_ne_bytes(), value.to_ne_bytes());
                let mut maps = core.maps.borrow_mut();
                maps.update(map, &is, &key, &value, (0, 0));
            }
        }
        for call in &description.call {
            if let Some(word) = &call.when
                && self.shape.truth(word)? == 0
            {
                continue;
            }
            let program = object.variable(&call.program).map_err(|e| e.to_string())?;
            for place in self.shape.places(call.each.as_deref())? {
                let arguments = call.arguments.iter();
                let mut arguments: Vec<i32> = arguments
                    .map(|value| value.number(&self.shape, place).map(|n| n as i32))
                    .collect::<Result<_, _>>()?;
                // Room for what the program may write behind them.
                arguments.resize(arguments.len() + 64, 0);
                let error = object.call(program, arguments.as_mut_ptr().cast());
                if error != 0 {
                    return Err(format!("{} failed with {error}", call.program));
                }
            }
        }
        Ok(())
    }
}
