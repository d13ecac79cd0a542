// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of trace-cmd's trace.dat, for tests: pages of 256 bytes as the kernel fills them, and the
//! file around them.

/// Compresses bytes.
pub type Pack = fn(&[u8]) -> Vec<u8>;

/// The file to be written.
pub struct Dat<'a> {
    pub big: bool,
    /// Version 7, and how it is compressed.
    pub seven: Option<(&'a str, Pack)>,
    /// The formats of events, from those of ftrace on, as perf and trace-cmd write them.
    pub formats: &'a [u8],
    /// Each event's CPU, time and bytes, in the order of time.
    pub events: &'a [(u32, u64, Vec<u8>)],
    pub cpus: u32,
    pub clock: &'a str,
    /// The events that the last page of the last CPU says were lost.
    pub lost: u64,
}

const PAGE: usize = 256;
const HEAD: usize = 16;

impl Dat<'_> {
    fn number(&self, out: &mut Vec<u8>, number: u64, bytes: usize) {
        match self.big {
            true => out.extend(&number.to_be_bytes()[8 - bytes..]),
            false => out.extend(&number.to_le_bytes()[..bytes]),
        }
    }

    /// Adds an event's first word, and the bytes after it.
    fn word(&self, out: &mut Vec<u8>, kind: u64, delta: u64, rest: &[u8]) {
        let word = if self.big { kind << 27 | delta } else { delta << 5 | kind };
        self.number(out, word, 4);
        out.extend(rest);
    }

    fn four(&self, number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.number(&mut out, number, 4);
        out
    }

    /// Adds an event so long after the one before, with a time extend, a time stamp or a discarded
    /// event before it now and then.
    fn event(&self, out: &mut Vec<u8>, nth: usize, before: u64, at: u64, bytes: &[u8]) {
        let mut delta = at - before;
        if delta >> 27 > 0 || nth % 5 == 1 {
            self.word(out, 30, delta & ((1 << 27) - 1), &self.four(delta >> 27));
            delta = 0;
        } else if nth % 5 == 2 {
            self.word(out, 31, at & ((1 << 27) - 1), &self.four(at >> 27 & u64::from(u32::MAX)));
            delta = 0;
        } else if nth % 5 == 3 && delta > 1 {
            self.word(out, 29, 1, &[self.four(8), vec![9; 4]].concat());
            delta -= 1;
        }
        let size = bytes.len().next_multiple_of(4);
        match nth % 2 {
            0 => self.word(out, size as u64 / 4, delta, &[]),
            _ => self.word(out, 0, delta, &self.four(size as u64 + 4)),
        }
        out.extend(bytes);
        out.resize(out.len() + size - bytes.len(), 0);
    }

    /// Returns a CPU's pages.
    fn pages(&self, cpu: u32) -> Vec<u8> {
        let (mut pages, mut page, mut begin, mut before) = (Vec::new(), Vec::new(), 0, 0);
        let mut end = |begin, mut page: Vec<u8>, lost: u64| {
            self.number(&mut pages, begin, 8);
            let flags = if lost > 0 { 3 << 30 } else { 0 };
            self.number(&mut pages, page.len() as u64 | flags, 8);
            if lost > 0 {
                self.number(&mut page, lost, 8);
            }
            pages.extend(page);
            pages.resize(pages.len().next_multiple_of(PAGE), 0);
        };
        let events = self.events.iter().filter(|(of, ..)| *of == cpu);
        for (nth, (_, at, bytes)) in events.enumerate() {
            if page.len() + bytes.len() + 40 > PAGE - HEAD {
                self.word(&mut page, 29, 0, &[]);
                end(begin, std::mem::take(&mut page), 0);
            }
            if page.is_empty() {
                (begin, before) = (*at, *at);
            }
            self.event(&mut page, nth, before, *at, bytes);
            before = *at;
        }
        end(begin, page, if cpu + 1 == self.cpus { self.lost } else { 0 });
        pages
    }

    /// Returns what tells of the kernel's layout of a page.
    fn header_info(&self) -> Vec<u8> {
        let field = |name: &str, offset, size| {
            format!("\tfield: u64 {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
        };
        let page =
            field("timestamp", 0, 8) + &field("commit", 8, 8) + &field("data", HEAD, PAGE - HEAD);
        let mut out = b"header_page\0".to_vec();
        self.number(&mut out, page.len() as u64, 8);
        out.extend(page.bytes());
        out.extend(b"header_event\0\0\0\0\0\0\0\0\0");
        out
    }

    fn option(&self, out: &mut Vec<u8>, id: u64, data: &[u8]) {
        self.number(out, id, 2);
        self.number(out, data.len() as u64, 4);
        out.extend(data);
    }

    /// Adds a section of version 7, and returns its place.
    fn section(&self, out: &mut Vec<u8>, id: u64, pack: Option<Pack>, data: &[u8]) -> u64 {
        let at = out.len() as u64;
        self.number(out, id, 2);
        self.number(out, u64::from(pack.is_some()), 2);
        self.number(out, 0, 4);
        let packed = pack.map_or(data.to_vec(), |pack| pack(data));
        self.number(out, packed.len() as u64, 8);
        if pack.is_some() {
            self.number(out, packed.len() as u64, 4);
            self.number(out, data.len() as u64, 4);
        }
        out.extend(packed);
        at
    }

    /// Returns the file, with these options besides its own.
    pub fn file(&self, more: &[(u64, &[u8])]) -> Vec<u8> {
        let version = if self.seven.is_some() { "7" } else { "6" };
        let mut out =
            [&b"\x17\x08\x44tracing"[..], version.as_bytes(), &[0, u8::from(self.big), 8]].concat();
        self.number(&mut out, PAGE as u64, 4);
        let mut options = Vec::new();
        self.option(&mut options, 4, format!("[{}] global", self.clock).as_bytes());
        self.option(&mut options, 5, b"Linux host 6.1 x86_64\0");
        more.iter().for_each(|(id, data)| self.option(&mut options, *id, data));
        let pages: Vec<Vec<u8>> = (0..self.cpus).map(|cpu| self.pages(cpu)).collect();
        let Some((name, pack)) = self.seven else {
            out.extend([self.header_info(), self.formats.to_vec(), vec![0; 16]].concat());
            out.extend(self.four(self.cpus.into()));
            out.extend([b"options  \0", &options[..], &[0, 0], b"flyrecord\0"].concat());
            let mut at = out.len() + 16 * pages.len();
            for pages in &pages {
                self.number(&mut out, at as u64, 8);
                self.number(&mut out, pages.len() as u64, 8);
                at += pages.len();
            }
            out.extend(pages.concat());
            return out;
        };
        let pack = Some(pack).filter(|_| name != "none");
        out.extend([name.as_bytes(), b"\x001.0\0"].concat());
        let first = out.len();
        out.extend([0; 8]);
        self.option(&mut options, 8, &self.four(self.cpus.into()));
        let after_ftrace = 4;
        let parts =
            [&self.header_info()[..], &self.formats[..after_ftrace], &self.formats[after_ftrace..]];
        for (part, id) in parts.into_iter().zip(16..) {
            let mut at = Vec::new();
            let place = self.section(&mut out, id, pack, part);
            self.number(&mut at, place, 8);
            self.option(&mut options, id, &at);
        }
        let mut buffer = Vec::new();
        let place = self.section(&mut out, 3, pack, &[]);
        self.number(&mut buffer, place, 8);
        buffer.extend([b"\0", self.clock.as_bytes(), b"\0"].concat());
        self.number(&mut buffer, PAGE as u64, 4);
        self.number(&mut buffer, self.cpus.into(), 4);
        for (cpu, pages) in pages.iter().enumerate() {
            let at = out.len();
            match pack {
                None => out.extend(pages),
                Some(pack) => {
                    let chunks = pages.chunks(10 * PAGE);
                    self.number(&mut out, chunks.len() as u64, 4);
                    for chunk in chunks {
                        let packed = pack(chunk);
                        self.number(&mut out, packed.len() as u64, 4);
                        self.number(&mut out, chunk.len() as u64, 4);
                        out.extend(packed);
                    }
                }
            }
            self.number(&mut buffer, cpu as u64, 4);
            self.number(&mut buffer, at as u64, 8);
            self.number(&mut buffer, (out.len() - at) as u64, 8);
        }
        self.option(&mut options, 3, &buffer);
        self.option(&mut options, 0, &[0; 8]);
        let at = self.section(&mut out, 0, None, &options);
        let mut place = Vec::new();
        self.number(&mut place, at, 8);
        out[first..first + 8].copy_from_slice(&place);
        out
    }
}

/// Returns a frame of zstd that holds the bytes as they are.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    let size = bytes.len() as u32;
    let block = (size << 3 | 1).to_le_bytes();
    [&b"\x28\xb5\x2f\xfd\xa0"[..], &size.to_le_bytes(), &block[..3], bytes].concat()
}
