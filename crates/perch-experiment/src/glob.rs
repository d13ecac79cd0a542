// SPDX-License-Identifier: GPL-2.0-or-later
//! The matcher for the patterns of `--only` and of gates.

/// Returns true where `text` matches `pattern`, in which `*` stands for any text and `?` for one
/// character.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // The place of the last `*`, and how much of the text it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, t) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("tbench/*", "tbench/node0/n=1", true),
            ("*/node0/*", "tbench/node0-1/n=1", false),
            ("*/n=1", "tbench/node0/n=128", false),
            ("*RR*n=?", "TCP_RR/node0/n=4", true),
            ("*RR*n=?", "TCP_RR/node0/n=16", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
