// SPDX-License-Identifier: GPL-2.0-or-later
//! The page that `perch report` makes, in a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{directory, file, printed};

fn folder() -> PathBuf {
    directory("report")
}

/// Runs the command, and keeps what it prints in a file.
fn keep(name: &str, line: &str) -> String {
    file("report", name, printed(line))
}

/// Opens a page in a browser. Returns the document when all is loaded, and the lines of the
/// browser's console.
fn open(page: &Path, more: &[&str]) -> (String, Vec<String>) {
    // Each page has a profile of its own: tests run side by side, and a browser locks its profile.
    let profile = folder().join("profile").join(page.file_stem().unwrap());
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--enable-logging=stderr", "--window-size=1000,1400"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium runs; `./x test` installs it");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "chromium: {errors}");
    let said = errors.lines().filter(|line| line.contains(":CONSOLE"));
    let said = said.map(str::to_string).collect();
    (String::from_utf8(output.stdout).unwrap(), said)
}

/// A copy of a page with a script behind it, which writes the size and the number of parts of each
/// chart.
fn measured(page: &str) -> PathBuf {
    let script = "<script>for (const svg of document.querySelectorAll('svg')) {\
        const box = svg.getBoundingClientRect();\
        const parts = svg.querySelectorAll('circle,rect,path,polyline,polygon,line').length;\
        document.body.append(`\\nCHART ${Math.round(box.width)} ${Math.round(box.height)} ${parts}\\n`);\
        }</script>";
    let path = folder().join("measured.html");
    std::fs::write(&path, format!("{page}{script}")).unwrap();
    path
}

/// Files with few results of two experiments and of a comparison.
fn small_results() -> [String; 3] {
    let keep = |name: &str, line: &str| {
        keep(name, &format!("{line} --repetitions 2 --format json --quiet"))
    };
    [
        keep("scan.json", "experiment run cluster-scan --only */node0/n=1 --arms all"),
        keep("capacity.json", "experiment run capacity-wakeup --only hackbench/juno/*"),
        keep(
            "compare.json",
            "compare -m juno -w hackbench:groups=1 --arm a:capacity=off --arm b:capacity=posted",
        ),
    ]
}

#[test]
fn a_browser_draws_every_chart_and_has_nothing_to_complain_of() {
    let results = small_results();
    let page = folder().join("report.html");
    printed(&format!("report {} -o {}", results.join(" "), page.display()));

    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
    let (document, said) = open(&measured(&text), &[]);
    assert!(said.is_empty(), "{said:?}");
    let charts: Vec<Vec<u32>> = document
        .lines()
        .filter_map(|line| line.split("CHART ").nth(1))
        // The script's own text is part of the document, but its words are no numbers.
        .filter_map(|line| line.split(' ').map(|n| n.trim().parse().ok()).collect())
        .collect();
    assert_eq!(charts.len(), text.matches("<svg ").count(), "{charts:?}");
    assert!(charts.len() >= 25, "{charts:?}");
    // Each chart has words for a reader who cannot see it.
    for words in ["<svg role=\"img\" aria-label=\"", "</title><desc>"] {
        assert_eq!(text.matches(words).count(), charts.len(), "{words}");
    }
    for what in ["wake-up latency by percentile", "decisions by reason", "where tasks ran"] {
        assert!(text.matches(what).count() >= 3, "{what}");
    }
    for chart in &charts {
        assert!(chart[0] >= 600 && chart[1] >= 30 && chart[2] >= 2, "{charts:?}");
    }
    has_looks(&page);
}

/// Demands that a browser shows the page at `page` light, dark and on paper. The three pictures
/// stay in the folder, for a person to look at.
fn has_looks(page: &Path) {
    // The file of a picture of more than one colour is larger than that of a blank one.
    for (name, look) in [("light.png", "1"), ("dark.png", "0")] {
        let picture = folder().join(name);
        let _ = std::fs::remove_file(&picture);
        let screenshot = format!("--screenshot={}", picture.display());
        let scheme = format!("--blink-settings=preferredColorScheme={look}");
        let (_, said) = open(page, &[&screenshot, &scheme]);
        assert!(said.is_empty(), "{said:?}");
        let bytes = std::fs::read(&picture).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 30_000, "{}", bytes.len());
    }
    let paper = folder().join("report.pdf");
    let print = format!("--print-to-pdf={}", paper.display());
    let (_, said) = open(page, &[&print]);
    assert!(said.is_empty(), "{said:?}");
    let bytes = std::fs::read(&paper).unwrap();
    assert!(bytes.starts_with(b"%PDF") && bytes.len() > 50_000, "{}", bytes.len());
    let [light, dark] = ["light.png", "dark.png"].map(|name| std::fs::read(folder().join(name)));
    assert_ne!(light.unwrap(), dark.unwrap());
}

/// A page with a fault makes the test above fail.
#[test]
fn what_a_page_complains_of_is_seen() {
    let path = folder().join("complains.html");
    let page = "<!doctype html><title>x</title><script>console.error('something broke')</script>";
    std::fs::write(&path, page).unwrap();
    let (_, said) = open(&path, &[]);
    assert!(said.iter().any(|line| line.contains("something broke")), "{said:?}");
}
