// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest's side of a guest: replies of its agent, counts of lines, and symbols.

use perch_fuzz::{Target, fuzz, refused};
use perch_lab::agent::frame::{Event, PROTOCOL, Status, receive, send};
use perch_lab::coherence::{Counted, Symbols};

use crate::{files, folder, strings, text};

#[test]
fn reply() {
    let events = [
        Event::Ready(PROTOCOL.to_string()),
        Event::Started(1, 77),
        Event::Stdout(1, b"what it wrote\n".to_vec()),
        Event::Stderr(1, vec![0x1b; 40]),
        Event::Ended(1, Status::Code(0)),
        Event::Ended(2, Status::Signal(9)),
        Event::File(3, (0..=255).collect()),
        Event::Done(3),
        Event::Failed(4, "no such file".to_string()),
    ];
    let mut all = Vec::new();
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for event in &events {
        let mut one = Vec::new();
        send(&mut one, event).expect("memory takes it");
        all.extend_from_slice(&one);
        seeds.push(one);
    }
    seeds.push(all);
    let target = Target {
        name: "reply",
        inputs: 9000,
        seeds,
        words: &[],
        binary: true,
        seal: |_| {},
        check: &|input, _| {
            let mut stream = input;
            loop {
                match receive::<Event>(&mut stream) {
                    Ok(None) => return Ok(()),
                    Ok(Some(event)) => drop(event.about()),
                    Err(error) => return refused(&error.to_string(), "", input),
                }
            }
        },
    };
    fuzz(&target, &folder());
}

#[test]
fn counts() {
    let words = r#"number¦rounds¦accesses¦instructions¦spent¦lines¦moved¦code¦[¦]¦{¦}¦,¦:¦"¦\n¦\0"#;
    let seeds = files("crates/perch-fuzz/seeds/counts", ".txt");
    text("counts", 7000, seeds, words, &|input, _| match Counted::parse(&String::from_utf8_lossy(
        input,
    )) {
        Ok(_) => Ok(()),
        Err(error) => refused(&error.to_string(), "", input),
    });
}

/// Any text is a list of symbols, perhaps an empty one.
#[test]
fn symbols() {
    let seeds = strings(&[
        "ffffffff81000000 T _text\nffffffff81000040 t secondary_startup\nffffffff81000140 D data\n",
        "ffff800008000000 T _text\nffff800008010000 t do_one [module]\n",
    ]);
    text("symbols", 7000, seeds, "T¦t¦ ¦[m]¦0¦ffffffffffffffff", &|input, _| {
        let symbols = Symbols::parse(&String::from_utf8_lossy(input));
        for address in [0, 0xffff_ffff_8100_0050, u64::MAX] {
            symbols.find(address);
        }
        Ok(())
    });
}
