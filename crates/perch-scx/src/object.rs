// SPDX-License-Identifier: GPL-2.0-or-later
//! A natively compiled scheduler: a shared object, of which each simulation loads a copy.

use std::ffi::{CString, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

use libloading::Library;

use crate::abi::{Bind, Callbacks, FindCallbacks, KernelCalls, Layout, SetUclamp, TimerExpired};
use crate::memory::TaskAt;

/// The reason why a shared object cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The object could not be put into memory.
    #[error("a copy of the scheduler in memory: {0}")]
    Copy(#[from] std::io::Error),
    /// The dynamic linker refused it, or it lacks a symbol.
    #[error("the scheduler's shared object: {0}")]
    Load(#[from] libloading::Error),
    /// It has no table of callbacks of this name.
    #[error("the scheduler has no struct sched_ext_ops {0}")]
    Ops(String),
    /// A variable cannot be set to what the scheduler's description says.
    #[error("{0} of the scheduler: {1}")]
    Set(String, String),
}

/// A copy of a scheduler, with global variables of its own.
pub(crate) struct Object {
    layout: Layout,
    bind: Bind,
    callbacks: FindCallbacks,
    set_uclamp: SetUclamp,
    timer_expired: TimerExpired,
    /// Its code and its variables.
    library: Library,
    /// The file that it was loaded from. The dynamic linker takes two files of one name for the same
    /// one, so the descriptor, which is in the name, is not used again before the object is unloaded.
    _file: File,
}

impl Object {
    /// Loads a copy of the object with these bytes.
    pub fn load(bytes: &[u8]) -> Result<Object, ObjectError> {
        // The dynamic linker knows a file that it has loaded by its inode, so a copy needs a file.
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"scheduler.so".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        // SAFETY: the descriptor is new, and nobody else has it.
        let mut file = unsafe { File::from_raw_fd(fd) };
        file.write_all(bytes)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the object has no initialisers, and the symbols have the types that native/abi.h
        // declares.
        unsafe {
            let library = Library::new(path)?;
            Ok(Object {
                layout: **library.get::<*const Layout>(b"scx_layout\0")?,
                bind: *library.get(b"scx_bind\0")?,
                callbacks: *library.get(b"scx_callbacks\0")?,
                set_uclamp: *library.get(b"scx_set_uclamp\0")?,
                timer_expired: *library.get(b"scx_timer_expired\0")?,
                library,
                _file: file,
            })
        }
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Makes these functions the program's kernel.
    ///
    /// # Safety
    /// They must be valid until the last call of the program.
    pub unsafe fn bind(&self, calls: *const KernelCalls) {
        // SAFETY: the caller's promise.
        unsafe { (self.bind)(calls) }
    }

    /// The callbacks of this table; without a name, of the first. They may be called as long as the
    /// object is there and has its kernel, with what [`crate::memory`] has made by its layout.
    pub fn callbacks(&self, ops: &str) -> Result<Callbacks, ObjectError> {
        let name = CString::new(ops).map_err(|_| ObjectError::Ops(ops.to_string()))?;
        let mut callbacks = Callbacks::default();
        let name = match ops {
            "" => std::ptr::null(),
            _ => name.as_ptr(),
        };
        // SAFETY: both are valid for the call, or null as the function takes it.
        match unsafe { (self.callbacks)(name, &mut callbacks) } {
            0 => Ok(callbacks),
            _ => Err(ObjectError::Ops(ops.to_string())),
        }
    }

    /// The address of one of the program's variables.
    pub fn variable(&self, name: &str) -> Result<*mut c_void, ObjectError> {
        // SAFETY: only the address is taken.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.as_bytes())? };
        Ok(*symbol)
    }

    /// Runs a program that takes a pointer to its arguments, at an address that
    /// [`Object::variable`] returned; returns what it returns.
    pub fn call(&self, program: *mut c_void, arguments: *mut c_void) -> i32 {
        // SAFETY: the description names a program of this type, and the caller's memory is longer
        // than the arguments.
        unsafe {
            let program: unsafe extern "C" fn(*mut c_void) -> i32 = std::mem::transmute(program);
            program(arguments)
        }
    }

    pub fn set_uclamp(&self, task: TaskAt, min: u32, max: u32) {
        // SAFETY: the task is in the memory that the program's layout describes.
        unsafe { (self.set_uclamp)(task, min, max) }
    }

    pub fn timer_expired(&self, timer: usize) {
        // SAFETY: the program has started this timer.
        unsafe { (self.timer_expired)(timer as *mut c_void) }
    }
}
