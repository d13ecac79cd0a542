// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of which sections consist: charts with captions, and tables.

use std::fmt::Write;

use super::escape::escape;

/// Adds a chart with its caption.
pub fn captioned(body: &mut String, svg: &str, caption: &str) {
    let caption = escape(caption);
    let _ = writeln!(body, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
}

/// Adds a table: its headings, and its rows of as many cells.
pub fn table(body: &mut String, head: &[String], rows: &[Vec<String>]) {
    body.push_str("<div class=\"wide\"><table>\n<tr>");
    for cell in head {
        let _ = write!(body, "<th>{}</th>", escape(cell));
    }
    body.push_str("</tr>\n");
    for row in rows {
        body.push_str("<tr>");
        for cell in row {
            let _ = write!(body, "<td>{}</td>", escape(cell));
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</table></div>\n");
}

/// Returns headings.
pub fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}
