// SPDX-License-Identifier: GPL-2.0-only
//! The page that `perch report` makes, in a real browser.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::perch;

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs the command, and keeps what it prints in a file.
fn keep(name: &str, arguments: &[&str]) -> String {
    let output = perch(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let path = folder().join(name);
    std::fs::write(&path, output.stdout).unwrap();
    path.to_str().unwrap().to_string()
}

/// What a browser makes of a page: its document when all is loaded, and what it said on its console.
fn open(page: &Path, more: &[&str]) -> (String, Vec<String>) {
    let profile = folder().join("profile");
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

/// A page, and after it a script that says of each chart how large it is and how many parts it has.
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

#[test]
fn a_browser_draws_every_chart_and_has_nothing_to_complain_of() {
    let small = ["--repetitions", "2", "--format", "json", "--quiet"];
    let scan = [
        "experiment",
        "run",
        "cluster-scan",
        "--only",
        "*/node0/n=1",
        "--arms",
        "all",
    ];
    let capacity = [
        "experiment",
        "run",
        "capacity-wakeup",
        "--only",
        "hackbench/juno/*",
    ];
    let compare = [
        "compare",
        "-m",
        "juno",
        "-w",
        "hackbench:groups=1",
        "--arm",
        "a:capacity=off",
        "--arm",
        "b:capacity=posted",
    ];
    let results = [
        keep("scan.json", &[&scan[..], &small].concat()),
        keep("capacity.json", &[&capacity[..], &small].concat()),
        keep("compare.json", &[&compare[..], &small].concat()),
    ];
    let page = folder().join("report.html");
    let arguments = [
        &results[0],
        &results[1],
        &results[2],
        "-o",
        page.to_str().unwrap(),
    ];
    let output = perch(&[&["report"], &arguments[..]].concat());
    assert!(output.status.success(), "{output:?}");

    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.len() < 5_000_000, "{} bytes", text.len());
    let (document, said) = open(&measured(&text), &[]);
    assert!(said.is_empty(), "{said:?}");
    let charts: Vec<Vec<u32>> = document
        .lines()
        .filter_map(|line| line.split("CHART ").nth(1))
        // The script's own text is a part of the document.
        .filter_map(|line| line.split(' ').map(|n| n.trim().parse().ok()).collect())
        .collect();
    assert_eq!(charts.len(), text.matches("<svg ").count(), "{charts:?}");
    assert!(charts.len() >= 10, "{charts:?}");
    for chart in &charts {
        assert!(
            chart[0] >= 600 && chart[1] >= 30 && chart[2] >= 2,
            "{charts:?}"
        );
    }

    // Something for a person to look at, in both looks: not of one colour, so of some size.
    for (name, look) in [("light.png", "1"), ("dark.png", "0")] {
        let picture = folder().join(name);
        let _ = std::fs::remove_file(&picture);
        let screenshot = format!("--screenshot={}", picture.display());
        let scheme = format!("--blink-settings=preferredColorScheme={look}");
        let (_, said) = open(&page, &[&screenshot, &scheme]);
        assert!(said.is_empty(), "{said:?}");
        let bytes = std::fs::read(&picture).unwrap();
        assert!(
            bytes.starts_with(b"\x89PNG") && bytes.len() > 30_000,
            "{}",
            bytes.len()
        );
    }
    let [light, dark] = ["light.png", "dark.png"].map(|name| std::fs::read(folder().join(name)));
    assert_ne!(light.unwrap(), dark.unwrap());
}

/// The test above would notice.
#[test]
fn what_a_page_complains_of_is_seen() {
    let path = folder().join("complains.html");
    let page = "<!doctype html><title>x</title><script>console.error('something broke')</script>";
    std::fs::write(&path, page).unwrap();
    let (_, said) = open(&path, &[]);
    assert!(
        said.iter().any(|line| line.contains("something broke")),
        "{said:?}"
    );
}
