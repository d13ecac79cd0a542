// SPDX-License-Identifier: GPL-2.0-or-later
//! The BPF program from its object to the kernel and back, by libbpf.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum64, MemberAttr, Struct};
use libbpf_rs::{
    AsRawLibbpf, Link, MapCore, MapType, Object, ObjectBuilder, OpenObject, PrintLevel,
};

use crate::counters::Counters;
use crate::error::SchedulerError;
use crate::exit::Ended;
use crate::kernel::{Kernel, UnableError};
use crate::refusal::{ObjectError, RefusedError};
use crate::storage::Storage;
use perch_plan::interface::{ARENA_BASE, Config, Exit};
use perch_plan::{Abilities, IDLE, LIMITS, Plan};

/// Bytes where a reader of ELF finds its words aligned.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

/// bpf/scheduler.bpf.c, compiled by build.rs.
pub(crate) static OBJECT: &[u8] = {
    const BYTES: &[u8; include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o")).len()] =
        include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o"));
    static OBJECT: &Aligned<[u8]> = &Aligned(*BYTES);
    &OBJECT.0
};

/// The map's flag that a scheduler is unloaded with the process that holds its link.
const BPF_F_LINK: u32 = 1 << 13;

/// The BPF program while the kernel schedules by it.
pub struct Program {
    /// Dropped before the object: the drop unloads the scheduler.
    link: Option<Link>,
    exit: NonNull<Exit>,
    turns: NonNull<u64>,
    arena: NonNull<u8>,
    object: Object,
}

/// The messages of libbpf and the verifier since the last [`hear`].
static HEARD: Mutex<String> = Mutex::new(String::new());

/// Collects what libbpf says from now on.
pub(crate) fn hear() {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Info, |_, text| {
        let mut heard = HEARD.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push_str(&text);
    })));
}

/// The messages heard so far.
pub(crate) fn heard() -> String {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Program {
    /// Loads the program for `plan` with the maps of `storage` and lets it schedule. Everything libbpf and the verifier say
    /// replaces what stands in the file `log`, which has a name, if there is one.
    ///
    /// # Errors
    /// [`SchedulerError::Refused`] with the kernel's reason; [`SchedulerError::Unable`] when
    /// another scheduler was loaded first.
    pub fn load(
        kernel: &Kernel,
        plan: &Plan,
        hotplug_seq: Option<u64>,
        storage: &mut Storage,
        log: Option<(&mut File, &Path)>,
    ) -> Result<Program, SchedulerError> {
        hear();
        let result = Program::try_load(kernel, plan, hotplug_seq, storage);
        if let Some((file, path)) = log {
            rewrite(file, &heard())
                .map_err(|source| UnableError::Write { path: path.to_path_buf(), source })?;
        }
        result
    }

    fn try_load(
        kernel: &Kernel,
        plan: &Plan,
        hotplug_seq: Option<u64>,
        storage: &mut Storage,
    ) -> Result<Program, SchedulerError> {
        let refused = |what: &str, source: libbpf_rs::Error| RefusedError::Load {
            what: what.to_string(),
            source,
            heard: heard(),
        };
        let mut open = ObjectBuilder::default()
            .name("perch")
            .and_then(|builder| builder.open_memory(OBJECT))
            .map_err(|error| refused("perch's BPF object cannot be opened", error))?;
        prepare(&mut open, plan)
            .map_err(|source| RefusedError::Object { source, heard: heard() })?;
        storage.lend(&mut open).map_err(|error| {
            refused("perch's BPF program cannot have the maps of the last one", error)
        })?;
        let ops = plan.ops();
        set_member(&mut open, ops, "flags", plan.flags());
        let abilities = Btf::from_vmlinux().map(|types| abilities_of(&types));
        for member in plan.left_out(abilities.unwrap_or_default()) {
            set_member(&mut open, ops, member, 0);
        }
        if let Some(seq) = hotplug_seq {
            // Should a CPU come or go before it is attached, the kernel asks for a restart.
            set_member(&mut open, ops, "hotplug_seq", seq);
        }
        let object = open.load().map_err(|error| {
            refused(&format!("Linux {} refused perch's BPF program", kernel.version()), error)
        })?;
        storage.keep(&object).map_err(|error| {
            refused("the maps of perch's BPF program cannot be kept", error.into())
        })?;

        let arena = memory(&object, "arena", plan.image().len())?;
        let exit = memory(&object, ".data.exit", size_of::<Exit>())?.cast();
        let turns = memory(&object, ".data.turns", size_of::<u64>())?.cast();
        // SAFETY: the arena is mapped, is that long, and no other thread knows of it yet.
        unsafe {
            arena.copy_from_nonoverlapping(NonNull::from(plan.image()).cast(), plan.image().len());
        }
        let mut program = Program { link: None, exit, turns, arena, object };
        program.attach(kernel, ops).map(|()| program)
    }

    fn attach(&mut self, kernel: &Kernel, ops: &str) -> Result<(), SchedulerError> {
        let mut maps = self.object.maps_mut();
        let attached = match maps.find(|map| map.name() == ops) {
            Some(mut ops) => ops.attach_struct_ops(),
            None => Err(std::io::Error::other(format!("it has no {ops}")).into()),
        };
        drop(maps);
        match attached {
            Ok(link) => {
                self.link = Some(link);
                Ok(())
            }
            Err(source) => {
                // Another scheduler may have been loaded since the check.
                kernel.check_free()?;
                if let Some(ended) = self.ended() {
                    return Err(SchedulerError::Ended(ended));
                }
                let what = format!("Linux {} did not let perch schedule", kernel.version());
                Err(SchedulerError::Refused(RefusedError::Attach { what, source, heard: heard() }))
            }
        }
    }

    /// How the kernel ended the program; none while it schedules.
    pub fn ended(&self) -> Option<Ended> {
        // SAFETY: mapped as long as the object lives; the kernel's side writes the kind last, and
        // every bit pattern is a value.
        Ended::read(&unsafe { self.exit.read_volatile() })
    }

    /// How often the program's timer has come, which looks at every queue.
    pub fn turns(&self) -> u64 {
        // SAFETY: aligned and mapped as long as the object lives, and the kernel's side writes whole
        // words.
        unsafe { AtomicU64::from_ptr(self.turns.as_ptr()) }.load(Ordering::Relaxed)
    }

    /// The counters of a program loaded for `plan`.
    ///
    /// # Safety
    /// They must not outlive the program.
    pub unsafe fn counters(&self, plan: &Plan) -> Counters {
        // SAFETY: the places are in the plan's image, which the arena holds; the caller keeps the
        // program.
        unsafe { Counters::new(self.arena, plan.places().clone()) }
    }

    /// Unloads the program, unless the kernel has, and returns how it ended. The counters stay
    /// readable.
    pub fn unload(&mut self) -> Option<Ended> {
        drop(self.link.take());
        self.ended()
    }
}

/// Replaces what stands in a file.
fn rewrite(file: &mut File, text: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

/// Applies the plan's changes to the object before it is loaded.
fn prepare(open: &mut OpenObject, plan: &Plan) -> Result<(), ObjectError> {
    let page = page_size();
    let pages = plan.image().len().div_ceil(page);
    let (mut arena, mut config, mut found_ops) = (false, false, false);
    for mut map in open.maps_mut() {
        match map.name().to_str() {
            Some("arena") => {
                // SAFETY: the map is open.
                let base =
                    unsafe { libbpf_sys::bpf_map__map_extra(map.as_libbpf_object().as_ptr()) };
                if base != ARENA_BASE {
                    return Err(ObjectError::ArenaAddress(base));
                }
                // The arena holds the program's own pages and the image's.
                let pages = u32::try_from(pages)
                    .ok()
                    .and_then(|pages| pages.checked_add(map.max_entries()))
                    .ok_or(ObjectError::ArenaPages(pages))?;
                map.set_max_entries(pages)?;
                arena = true;
            }
            Some(".rodata.config") => {
                let value = map
                    .initial_value_mut()
                    .filter(|value| value.len() == size_of::<Config>())
                    .ok_or(ObjectError::ConfigSize)?;
                value.copy_from_slice(plan.config());
                config = true;
            }
            Some(name @ ("perch_ops" | "perch_band_ops")) if name != plan.ops() => {
                map.set_autocreate(false)?;
            }
            Some(name @ ("perch_ops" | "perch_band_ops")) => {
                if map.map_flags() & BPF_F_LINK == 0 {
                    return Err(ObjectError::NoLink(name.to_string()));
                }
                found_ops = true;
            }
            Some(name) => {
                if let Some(entries) = plan.max_entries(name) {
                    map.set_max_entries(entries)?;
                }
            }
            None => {}
        }
    }
    match [(arena, "arena"), (config, ".rodata.config"), (found_ops, plan.ops())]
        .iter()
        .find(|(found, _)| !found)
    {
        Some((_, name)) => Err(ObjectError::Missing(name)),
        None => Ok(()),
    }
}

/// The abilities of the kernel of these types.
pub(crate) fn abilities_of(kernel: &Btf<'_>) -> Abilities {
    // Wider than 32 bits, the flags are an enum64.
    let flags = kernel.type_by_name::<Enum64<'_>>("scx_enq_flags");
    let callbacks = kernel.type_by_name::<Struct<'_>>("sched_ext_ops");
    let has = |name: &str| {
        callbacks.as_ref().is_some_and(|callbacks| {
            callbacks.iter().any(|member| member.name == Some(OsStr::new(name)))
        })
    };
    Abilities {
        takes_back: flags.is_some_and(|flags| {
            let name = Some(OsStr::new("SCX_ENQ_IMMED"));
            flags.iter().any(|flag| flag.name == name)
        }),
        limits: has(LIMITS),
        idle_groups: has(IDLE),
    }
}

/// Writes a word-sized member of one of the program's `struct sched_ext_ops`, if it has that.
fn set_member(open: &mut OpenObject, ops: &str, name: &str, value: u64) {
    let at = {
        // SAFETY: the object is open, and the reference ends with this block.
        let raw = unsafe { open.as_libbpf_object().as_ref() };
        let btf = Btf::from_bpf_object(raw).ok().flatten();
        btf.as_ref().and_then(|btf| {
            let ops = btf.type_by_name::<Struct<'_>>("sched_ext_ops")?;
            let member = ops.iter().find(|m| m.name == Some(OsStr::new(name)))?;
            match member.attr {
                MemberAttr::Normal { offset } => Some(offset as usize / 8),
                MemberAttr::BitField { .. } => None,
            }
        })
    };
    let Some(at) = at else { return };
    for mut map in open.maps_mut() {
        if map.name() == ops {
            let ops = map.initial_value_mut();
            if let Some(field) = ops.and_then(|ops| ops.get_mut(at..at + 8)) {
                field.copy_from_slice(&value.to_ne_bytes());
            }
        }
    }
}

/// Where the kernel mapped a map of a loaded object into this process, `len` bytes at least.
pub(crate) fn memory(object: &Object, name: &str, len: usize) -> Result<NonNull<u8>, RefusedError> {
    let absent = || RefusedError::Unmapped(name.to_string());
    let mut maps = object.maps();
    let map = maps.find(|map| map.name() == name).ok_or_else(absent)?;
    let mut size = 0;
    // SAFETY: the object is loaded, and the size is written where there is any memory.
    let at =
        unsafe { libbpf_sys::bpf_map__initial_value(map.as_libbpf_object().as_ptr(), &mut size) };
    // Of an arena, libbpf only tells the size of the program's own variables in it.
    let size = match map.map_type() {
        MapType::Arena => map.max_entries() as usize * page_size(),
        _ => size as usize,
    };
    let at = NonNull::new(at.cast::<u8>()).filter(|_| size >= len);
    at.ok_or_else(absent)
}

pub(crate) fn page_size() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}
