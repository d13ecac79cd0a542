// SPDX-License-Identifier: GPL-2.0-or-later
//! The program's BPF maps, and what it stores of tasks and cgroups.

use std::collections::{BTreeMap, HashMap};

use crate::abi::MapType;

/// `enum bpf_map_type`.
const ARRAY: u32 = 2;
const PERCPU_ARRAY: u32 = 6;
const LRU_HASH: u32 = 9;
const QUEUE: u32 = 22;
const STACK: u32 = 23;

const ENOENT: i32 = -2;
const E2BIG: i32 = -7;
const EEXIST: i32 = -17;
const EINVAL: i32 = -22;

const NOEXIST: u64 = 1;
const EXIST: u64 = 2;
/// `BPF_LOCAL_STORAGE_GET_F_CREATE`.
const CREATE: u64 = 1;

/// A value, which stays where it is as long as it is in its map.
type Value = Box<[u64]>;

fn value(bytes: u32, first: Option<&[u8]>) -> Value {
    let mut value: Value = vec![0; (bytes as usize).div_ceil(8)].into();
    if let Some(first) = first {
        put(&mut value, first);
    }
    value
}

fn put(value: &mut Value, bytes: &[u8]) {
    for (word, bytes) in value.iter_mut().zip(bytes.chunks(8)) {
        let mut whole = word.to_ne_bytes();
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_ne_bytes(whole);
    }
}

enum Map {
    /// The values of all CPUs one after another, for each key.
    Array {
        values: Value,
        stride: usize,
        cpus: usize,
    },
    Hash(BTreeMap<Vec<u8>, Value>),
    List(Vec<Vec<u8>>),
}

/// All maps of a program, by the addresses of their definitions.
#[derive(Default)]
pub(crate) struct Maps {
    maps: HashMap<usize, Map>,
    /// The number of entries that the loader gives a map in place of the one in its definition.
    sizes: HashMap<usize, u32>,
    storage: HashMap<(usize, usize), Value>,
    nr_cpus: usize,
}

impl Maps {
    pub fn new(nr_cpus: usize) -> Maps {
        Maps { nr_cpus, ..Maps::default() }
    }

    pub fn set_max_entries(&mut self, map: usize, entries: u32) {
        self.sizes.insert(map, entries);
    }

    fn entries(&self, map: usize, is: &MapType) -> u32 {
        self.sizes.get(&map).copied().unwrap_or(is.max_entries)
    }

    fn map(&mut self, map: usize, is: &MapType) -> &mut Map {
        let (entries, nr_cpus) = (self.entries(map, is) as usize, self.nr_cpus);
        self.maps.entry(map).or_insert_with(|| match is.kind {
            ARRAY | PERCPU_ARRAY => {
                let cpus = if is.kind == ARRAY { 1 } else { nr_cpus };
                let stride = (is.value_size as usize).next_multiple_of(64);
                let values = vec![0; entries * cpus * stride / 8].into();
                Map::Array { values, stride, cpus }
            }
            STACK | QUEUE => Map::List(Vec::new()),
            _ => Map::Hash(BTreeMap::new()),
        })
    }

    /// Returns where the value of `key` is; null if there is none. `cpu` is that of a per-CPU map.
    pub fn lookup(&mut self, map: usize, is: &MapType, key: &[u8], cpu: usize) -> *mut u64 {
        match self.map(map, is) {
            Map::Array { values, stride, cpus } => {
                let key = key.try_into().map_or(u32::MAX, u32::from_ne_bytes) as usize;
                let cpu = if *cpus == 1 { 0 } else { cpu };
                let at = (key.saturating_mul(*cpus) + cpu).saturating_mul(*stride / 8);
                values.get_mut(at).map_or(std::ptr::null_mut(), |word| word)
            }
            Map::Hash(values) => {
                values.get_mut(key).map_or(std::ptr::null_mut(), |value| value.as_mut_ptr())
            }
            Map::List(_) => std::ptr::null_mut(),
        }
    }

    /// Returns the key of the value that holds the address `at`, and where the value begins.
    pub fn key_at(&self, map: usize, at: usize) -> Option<(Vec<u8>, usize)> {
        match self.maps.get(&map)? {
            Map::Array { values, stride, cpus } => {
                let first = values.as_ptr() as usize;
                let place = at.checked_sub(first)? / stride;
                let key = (place / cpus) as u32;
                (place * stride < values.len() * 8)
                    .then(|| (key.to_ne_bytes().to_vec(), first + place * stride))
            }
            Map::Hash(values) => values.iter().find_map(|(key, value)| {
                let first = value.as_ptr() as usize;
                let holds = (first..first + value.len() * 8).contains(&at);
                holds.then(|| (key.clone(), first))
            }),
            Map::List(_) => None,
        }
    }

    pub fn update(
        &mut self,
        map: usize,
        is: &MapType,
        key: &[u8],
        bytes: &[u8],
        (flags, cpu): (u64, usize),
    ) -> i32 {
        let entries = self.entries(map, is) as usize;
        if let Map::Hash(values) = self.map(map, is) {
            if let Some(value) = values.get_mut(key) {
                if flags & NOEXIST != 0 {
                    return EEXIST;
                }
                put(value, bytes);
                return 0;
            }
            if flags & EXIST != 0 {
                return ENOENT;
            }
            if values.len() >= entries {
                if is.kind != LRU_HASH {
                    return E2BIG;
                }
                values.pop_first();
            }
            values.insert(key.to_vec(), value(is.value_size, Some(bytes)));
            return 0;
        }
        let at = self.lookup(map, is, key, cpu);
        if at.is_null() {
            return EINVAL;
        }
        // SAFETY: `lookup` returns the address of a value of this map.
        unsafe { at.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        0
    }

    pub fn delete(&mut self, map: usize, is: &MapType, key: &[u8]) -> i32 {
        match self.map(map, is) {
            Map::Hash(values) => match values.remove(key) {
                Some(_) => 0,
                None => ENOENT,
            },
            _ => EINVAL,
        }
    }

    pub fn push(&mut self, map: usize, is: &MapType, bytes: &[u8]) -> i32 {
        let entries = self.entries(map, is) as usize;
        match self.map(map, is) {
            Map::List(list) if list.len() < entries => {
                list.push(bytes.to_vec());
                0
            }
            Map::List(_) => E2BIG,
            _ => EINVAL,
        }
    }

    pub fn pop(&mut self, map: usize, is: &MapType) -> Option<Vec<u8>> {
        match self.map(map, is) {
            Map::List(list) if list.is_empty() => None,
            Map::List(list) if is.kind == QUEUE => Some(list.remove(0)),
            Map::List(list) => list.pop(),
            _ => None,
        }
    }

    /// Returns what the program stores of a task or a cgroup in this map; null if it has nothing
    /// and does not ask for it to be made, of `first`.
    pub fn storage(
        &mut self,
        map: usize,
        is: &MapType,
        owner: usize,
        first: Option<&[u8]>,
        flags: u64,
    ) -> *mut u64 {
        if flags & CREATE != 0 {
            let new = || value(is.value_size, first);
            return self.storage.entry((map, owner)).or_insert_with(new).as_mut_ptr();
        }
        let found = self.storage.get_mut(&(map, owner));
        found.map_or(std::ptr::null_mut(), |value| value.as_mut_ptr())
    }

    pub fn delete_storage(&mut self, map: usize, owner: usize) -> i32 {
        match self.storage.remove(&(map, owner)) {
            Some(_) => 0,
            None => ENOENT,
        }
    }

    /// A task or a cgroup is gone, and with it all that was stored of it.
    pub fn forget(&mut self, owner: usize) {
        self.storage.retain(|&(_, of), _| of != owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: u32 = 1;

    const fn of(kind: u32, max_entries: u32) -> MapType {
        MapType { kind, max_entries, key_size: 4, value_size: 12 }
    }

    #[test]
    fn values_stay_where_they_are() {
        let mut maps = Maps::new(3);
        let (array, percpu, hash) = (of(ARRAY, 2), of(PERCPU_ARRAY, 2), of(HASH, 2));
        let key = |n: u32| n.to_ne_bytes();
        let first = maps.lookup(1, &array, &key(1), 0);
        assert!(!first.is_null() && maps.lookup(1, &array, &key(2), 0).is_null());
        assert_eq!(maps.lookup(1, &array, &key(1), 2), first);
        let of_cpu = maps.lookup(2, &percpu, &key(1), 2);
        assert_ne!(maps.lookup(2, &percpu, &key(1), 1), of_cpu);
        assert_eq!(maps.update(3, &hash, &key(7), &[1; 12], (0, 0)), 0);
        let seven = maps.lookup(3, &hash, &key(7), 0);
        assert_eq!(maps.update(3, &hash, &key(8), &[2; 12], (0, 0)), 0);
        assert_eq!(maps.update(3, &hash, &key(9), &[2; 12], (0, 0)), E2BIG);
        assert_eq!(maps.update(3, &hash, &key(7), &[2; 12], (NOEXIST, 0)), EEXIST);
        assert_eq!(maps.lookup(3, &hash, &key(7), 0), seven);
        assert_eq!(maps.delete(3, &hash, &key(8)), 0);
        assert_eq!(maps.delete(3, &hash, &key(8)), ENOENT);
    }

    #[test]
    fn a_stack_is_as_long_as_the_loader_says() {
        let mut maps = Maps::new(1);
        let stack = of(STACK, 1);
        maps.set_max_entries(5, 2);
        for (n, result) in [(1, 0), (2, 0), (3, E2BIG)] {
            assert_eq!(maps.push(5, &stack, &[n; 12]), result);
        }
        assert_eq!(maps.pop(5, &stack), Some(vec![2; 12]));
        assert_eq!(maps.pop(5, &stack), Some(vec![1; 12]));
        assert_eq!(maps.pop(5, &stack), None);
    }

    #[test]
    fn storage_goes_with_its_owner() {
        let mut maps = Maps::new(1);
        let is = of(29, 0);
        assert!(maps.storage(1, &is, 100, None, 0).is_null());
        let made = maps.storage(1, &is, 100, Some(&[3; 12]), CREATE);
        assert_eq!(maps.storage(1, &is, 100, None, 0), made);
        maps.forget(100);
        assert!(maps.storage(1, &is, 100, None, 0).is_null());
    }
}
