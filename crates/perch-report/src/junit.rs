// SPDX-License-Identifier: GPL-2.0-or-later
//! JUnit XML, which the pages of CI systems show as tests.

use std::fmt::Write as _;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

/// One test of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCase {
    /// The group that CI systems sort the test into.
    pub class: String,
    /// The test's name.
    pub name: String,
    /// The result.
    pub outcome: TestOutcome,
}

/// The result of a test, with words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// It passed; the words, if there are any, stand in `system-out`.
    Passed(String),
    /// It failed, and the words say by how much.
    Failed(String),
    /// It could not be made, and the words say why.
    Skipped(String),
}

/// Returns the XML of one suite.
pub fn junit(suite: &str, cases: &[TestCase]) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let mut put = |event: Event| writer.write_event(event).expect("memory takes what is written");
    put(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)));
    let count = |is: fn(&TestOutcome) -> bool| {
        let counted = cases.iter().filter(|case| is(&case.outcome));
        counted.count().to_string()
    };
    let (tests, suite) = (cases.len().to_string(), legal(suite));
    let failures = count(|outcome| matches!(outcome, TestOutcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, TestOutcome::Skipped(_)));
    let counts = [
        ("tests", tests.as_str()),
        ("failures", &failures),
        ("errors", "0"),
        ("skipped", &skipped),
    ];
    put(Event::Start(BytesStart::new("testsuites").with_attributes(counts)));
    let named = BytesStart::new("testsuite").with_attributes([("name", suite.as_str())]);
    put(Event::Start(named.with_attributes(counts)));
    for case in cases {
        let (class, name) = (legal(&case.class), legal(&case.name));
        let attributes = [("classname", class.as_str()), ("name", &name)];
        let start = BytesStart::new("testcase").with_attributes(attributes);
        let (tag, words) = match &case.outcome {
            TestOutcome::Passed(words) if words.is_empty() => {
                put(Event::Empty(start));
                continue;
            }
            TestOutcome::Passed(words) => ("system-out", legal(words)),
            TestOutcome::Failed(words) => ("failure", legal(words)),
            TestOutcome::Skipped(words) => ("skipped", legal(words)),
        };
        put(Event::Start(start));
        let inner = BytesStart::new(tag);
        match tag {
            "system-out" => put(Event::Start(inner)),
            _ => put(Event::Start(inner.with_attributes([("message", words.as_str())]))),
        }
        put(Event::Text(BytesText::new(&words)));
        put(Event::End(BytesEnd::new(tag)));
        put(Event::End(BytesEnd::new("testcase")));
    }
    put(Event::End(BytesEnd::new("testsuite")));
    put(Event::End(BytesEnd::new("testsuites")));
    let bytes = writer.into_inner();
    String::from_utf8(bytes).expect("the text was UTF-8") + "\n"
}

/// Returns the text with each character that XML has no way to hold written out, as `\x1b`: names
/// come from anybody.
fn legal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' | '\n' | ' '..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            c => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quick_xml::Reader;

    fn case(name: &str, outcome: TestOutcome) -> TestCase {
        TestCase { class: "perch".to_string(), name: name.to_string(), outcome }
    }

    #[test]
    fn suite_counts_its_failures() {
        let cases = [
            case("a", TestOutcome::Passed(String::new())),
            case("b<-2%", TestOutcome::Failed("b & \"c\" fell".to_string())),
            case("c", TestOutcome::Passed("undecided".to_string())),
            case("d", TestOutcome::Skipped("not there".to_string())),
        ];
        insta::assert_snapshot!(junit("tcp_rr:n=4", &cases), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="4" failures="1" errors="0" skipped="1">
          <testsuite name="tcp_rr:n=4" tests="4" failures="1" errors="0" skipped="1">
            <testcase classname="perch" name="a"/>
            <testcase classname="perch" name="b&lt;-2%">
              <failure message="b &amp; &quot;c&quot; fell">b &amp; &quot;c&quot; fell</failure>
            </testcase>
            <testcase classname="perch" name="c">
              <system-out>undecided</system-out>
            </testcase>
            <testcase classname="perch" name="d">
              <skipped message="not there">not there</skipped>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    proptest! {
        #[test]
        fn any_text_makes_well_formed_xml(name in any::<String>(), words in any::<String>()) {
            let xml = junit(&name, &[case(&name, TestOutcome::Failed(words.clone()))]);
            let mut reader = Reader::from_str(&xml);
            let mut texts = Vec::new();
            loop {
                match reader.read_event() {
                    Ok(Event::Eof) => break,
                    Ok(Event::Text(text)) => texts.push(text.unescape().unwrap().into_owned()),
                    Ok(_) => {}
                    Err(error) => panic!("{error} in {xml}"),
                }
            }
            prop_assert!(words.trim().is_empty() || texts.contains(&legal(&words)));
        }
    }
}
