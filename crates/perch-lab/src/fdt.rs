// SPDX-License-Identifier: GPL-2.0-or-later
//! Flattened device trees: reading one, and writing it again.
//!
//! The format is that of the Devicetree Specification 0.4, chapter 5, version 17. All numbers are
//! big-endian.

use vm_fdt::{FdtReserveEntry, FdtWriter};

/// The first word of every blob.
const MAGIC: u32 = 0xd00d_feed;

/// The version that perch reads and writes.
const VERSION: u32 = 17;

/// Words that structure the tree.
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;

/// The most levels of nodes that perch reads. Paths in the trees of QEMU's boards have about four
/// parts; a deeper blob is damaged.
const DEEPEST: usize = 32;

/// A whole tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    pub root: Node,
    /// Address and size of each part of memory that the kernel has to leave alone.
    reserved: Vec<(u64, u64)>,
    /// The `reg` of the CPU that boots.
    boot_cpu: u32,
}

/// A node: its properties and its children, in the blob's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    pub name: String,
    pub properties: Vec<(String, Vec<u8>)>,
    pub children: Vec<Node>,
}

impl Node {
    /// A node without properties and children.
    pub fn new(name: impl Into<String>) -> Node {
        Node { name: name.into(), ..Node::default() }
    }

    /// The child called `name`.
    pub fn child(&mut self, name: &str) -> Option<&mut Node> {
        self.children.iter_mut().find(|child| child.name == name)
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let found = self.properties.iter().find(|(key, _)| key == name)?;
        Some(&found.1)
    }

    /// The value of a property that is one cell.
    pub fn cell(&self, name: &str) -> Option<u32> {
        Some(u32::from_be_bytes(self.get(name)?.try_into().ok()?))
    }

    /// Sets a property, in place of any that it had.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        let value = value.into();
        match self.properties.iter_mut().find(|(key, _)| key == name) {
            Some((_, old)) => *old = value,
            None => self.properties.push((name.to_string(), value)),
        }
    }

    /// Sets a property of one cell.
    pub fn set_cell(&mut self, name: &str, value: u32) {
        self.set(name, value.to_be_bytes());
    }

    /// The largest phandle in here, 0 if there is none.
    pub fn last_phandle(&self) -> u32 {
        let inside = self.children.iter().map(Node::last_phandle);
        inside.fold(self.cell("phandle").unwrap_or(0), u32::max)
    }
}

/// What is wrong with a blob, in words that follow its name. QEMU wrote it, so nobody can do more
/// than read them.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Damage(String);

impl<T: Into<String>> From<T> for Damage {
    fn from(words: T) -> Damage {
        Damage(words.into())
    }
}

/// Reads a blob.
///
/// # Errors
/// The damage.
pub(crate) fn read(blob: &[u8]) -> Result<Tree, Damage> {
    let header = |index: usize| word(blob, index * 4);
    if header(0)? != MAGIC {
        return Err("it does not begin with a device tree's magic number".into());
    }
    let (version, compatible) = (header(5)?, header(6)?);
    if version < VERSION || compatible > VERSION {
        return Err(format!("it is of version {version}, and {VERSION} is expected").into());
    }
    let part = |offset: u32, size: u32, what: &str| {
        let (from, size) = (offset as usize, size as usize);
        let part = blob.get(from..).and_then(|rest| rest.get(..size));
        part.ok_or_else(|| Damage(format!("its {what} lies beyond its end")))
    };
    let structure = part(header(2)?, header(9)?, "structure")?;
    let strings = part(header(3)?, header(8)?, "table of names")?;
    let mut reader = Reader { structure, strings, at: 0 };
    match reader.next()? {
        BEGIN_NODE => {}
        other => {
            return Err(format!("its structure begins with {other}, not with a node").into());
        }
    }
    Ok(Tree {
        root: reader.node(0)?,
        reserved: reserved(blob, header(4)? as usize)?,
        boot_cpu: header(7)?,
    })
}

/// The list of reserved memory, which an entry of zeroes ends.
fn reserved(blob: &[u8], mut at: usize) -> Result<Vec<(u64, u64)>, Damage> {
    let mut list = Vec::new();
    loop {
        let pair = [0, 8].map(|more| {
            let (high, low) = (word(blob, at + more)?, word(blob, at + more + 4)?);
            Ok::<u64, Damage>(u64::from(high) << 32 | u64::from(low))
        });
        let [address, size] = pair;
        match (address?, size?) {
            (0, 0) => return Ok(list),
            entry => list.push(entry),
        }
        at += 16;
    }
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Damage> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    let found = found.ok_or_else(|| format!("it ends before its byte {at}"))?;
    Ok(u32::from_be_bytes(*found))
}

struct Reader<'a> {
    structure: &'a [u8],
    strings: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u32, Damage> {
        let word = word(self.structure, self.at)?;
        self.at += 4;
        Ok(word)
    }

    /// The next word that is no padding.
    fn next(&mut self) -> Result<u32, Damage> {
        loop {
            match self.word()? {
                NOTHING => {}
                word => return Ok(word),
            }
        }
    }

    /// A node whose beginning has been read.
    fn node(&mut self, depth: usize) -> Result<Node, Damage> {
        if depth > DEEPEST {
            return Err(format!("its nodes are nested more than {DEEPEST} deep").into());
        }
        let name = text(self.structure, self.at)?;
        self.at = (self.at + name.len() + 1).next_multiple_of(4);
        let mut node = Node::new(name);
        loop {
            match self.next()? {
                PROPERTY => {
                    let (size, name) = (self.word()? as usize, self.word()?);
                    let value = self.structure.get(self.at..).and_then(|r| r.get(..size));
                    let name = text(self.strings, name as usize)?;
                    let value = value.ok_or_else(|| format!("its property {name} is cut off"))?;
                    node.properties.push((name, value.to_vec()));
                    self.at = (self.at + size).next_multiple_of(4);
                }
                BEGIN_NODE => node.children.push(self.node(depth + 1)?),
                END_NODE => return Ok(node),
                other => return Err(format!("its structure has a word {other} in a node").into()),
            }
        }
    }
}

/// The characters from `at` up to a zero.
fn text(bytes: &[u8], at: usize) -> Result<String, Damage> {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0);
    let text = end.and_then(|end| String::from_utf8(rest[..end].to_vec()).ok());
    text.ok_or_else(|| Damage(format!("it has no name at its byte {at}")))
}

impl Tree {
    /// The blob.
    ///
    /// # Errors
    /// What a blob cannot have.
    pub fn write(&self) -> Result<Vec<u8>, Damage> {
        let write = || {
            let reserved = self.reserved.iter();
            let reserved = reserved.map(|&(address, size)| FdtReserveEntry::new(address, size));
            let reserved = reserved.collect::<Result<Vec<_>, _>>()?;
            let mut writer = FdtWriter::new_with_mem_reserv(&reserved)?;
            writer.set_boot_cpuid_phys(self.boot_cpu);
            self.root.write(&mut writer)?;
            writer.finish()
        };
        write().map_err(|error: vm_fdt::Error| Damage(error.to_string()))
    }
}

impl Node {
    fn write(&self, to: &mut FdtWriter) -> Result<(), vm_fdt::Error> {
        let open = to.begin_node(&self.name)?;
        for (name, value) in &self.properties {
            to.property(name, value)?;
        }
        for child in &self.children {
            child.write(to)?;
        }
        to.end_node(open)
    }
}

/// The blob of a tree with nothing in it.
#[cfg(test)]
pub(crate) fn empty() -> Vec<u8> {
    let tree = Tree { root: Node::default(), reserved: Vec::new(), boot_cpu: 0 };
    tree.write().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nodes() -> impl Strategy<Value = Node> {
        let properties = || {
            let pair = ("[a-z,#-]{1,12}", proptest::collection::vec(any::<u8>(), 0..9));
            proptest::collection::vec(pair, 0..4)
        };
        let node = |(name, properties, children)| Node { name, properties, children };
        let leaf = ("[a-z]{1,9}(@[0-9]{1,4})?", properties(), Just(Vec::new())).prop_map(node);
        leaf.prop_recursive(4, 24, 4, move |inner| {
            let children = proptest::collection::vec(inner, 0..4);
            ("[a-z]{1,9}(@[0-9]{1,4})?", properties(), children).prop_map(node)
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(
            root in nodes(),
            reserved in proptest::collection::vec((1..u64::MAX / 2, 0..u64::MAX / 2), 0..2),
            boot_cpu in any::<u32>(),
        ) {
            let tree = Tree { root, reserved, boot_cpu };
            let blob = tree.write().unwrap();
            prop_assert_eq!(word(&blob, 4).unwrap() as usize, blob.len());
            prop_assert_eq!(read(&blob).unwrap(), tree);
        }

        #[test]
        fn damage_is_an_error_or_another_tree(
            root in nodes(), at in any::<prop::sample::Index>(), value in any::<u8>(),
        ) {
            let mut blob = Tree { root, reserved: Vec::new(), boot_cpu: 0 }.write().unwrap();
            for length in 0..blob.len() {
                prop_assert!(read(&blob[..length]).is_err(), "{} bytes", length);
            }
            let at = at.index(blob.len());
            blob[at] = value;
            let _ = read(&blob);
        }
    }

    #[test]
    fn properties_are_found_and_replaced() {
        let mut node = Node::new("cpu@0");
        node.set_cell("phandle", 7);
        node.set("compatible", b"cache\0");
        node.set_cell("phandle", 9);
        assert_eq!(node.cell("phandle"), Some(9));
        assert_eq!(node.cell("compatible"), None);
        assert_eq!(node.get("compatible"), Some(&b"cache\0"[..]));
        let mut root = Node::new("");
        root.children.push(node);
        assert_eq!(root.last_phandle(), 9);
        assert!(root.child("cpu@0").is_some() && root.child("cpu@1").is_none());
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert!(read(b"").unwrap_err().0.contains("ends before"));
        assert!(read(&[1; 64]).unwrap_err().0.contains("magic"));
        let mut deep = Node::new("x");
        for _ in 0..DEEPEST + 1 {
            let mut above = Node::new("x");
            above.children.push(deep);
            deep = above;
        }
        let tree = Tree { root: deep, reserved: Vec::new(), boot_cpu: 0 };
        assert!(read(&tree.write().unwrap()).unwrap_err().0.contains("deep"));
    }
}
