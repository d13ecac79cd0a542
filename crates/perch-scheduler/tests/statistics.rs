// SPDX-License-Identifier: GPL-2.0-or-later
//! Statistics as others read them: by the protocol of sched_ext's tools, and as OpenMetrics.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use perch_plan::interface::Event;
use perch_policy::Reason;
use perch_scheduler::stats::{
    About, Client, Decisions, GroupWaits, Listener, Report, Server, Source, Waits, openmetrics,
    prometheus,
};
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// Where one test's socket is: as deep as the real one, and no folder made yet.
fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("root/stats")
}

/// A server of a scheduler that has counted nothing.
fn answering(socket: &Path) -> Server {
    let mut server = Server::bind(socket).unwrap();
    server.answer(&Source::default()).unwrap();
    server
}

/// Sends one line to the server and returns the server's answer.
fn ask(socket: &Path, line: &str) -> (i64, Value) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    (answer["errno"].as_i64().unwrap(), answer["args"]["resp"].clone())
}

#[test]
fn the_field_s_requests_are_answered() {
    let folder = tempdir().unwrap();
    let socket = socket_in(&folder);
    let _server = answering(&socket);

    for request in [
        "{\"req\":\"stats\"}\n",
        "{\"req\":\"stats\",\"args\":{}}\n",
        "{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n",
    ] {
        let (errno, stats) = ask(&socket, request);
        assert_eq!((errno, &stats["stolen_llc"]), (0, &Value::from(0)), "{request}");
        assert_eq!(stats["reasons"]["cluster scan"]["wakeups"], 0);
    }
    let (errno, meta) = ask(&socket, "{\"req\":\"stats_meta\",\"args\":{}}\n");
    assert_eq!(errno, 0);
    assert_eq!(meta["Report"]["top"], "true");
    assert_eq!(meta["Report"]["fields"]["direct"]["datum"], "u64");
    assert_eq!(meta["Decisions"]["user"]["_om_label"], "reason");
}

#[test]
fn senseless_requests_are_refused_and_the_next_one_is_answered() {
    let folder = tempdir().unwrap();
    let socket = socket_in(&folder);
    let _server = answering(&socket);

    for (request, words) in [
        ("{\"req\":\"stats\",\"args\":{\"target\":\"layers\"}}\n", "unknown target"),
        ("{\"req\":\"reboot\"}\n", "unknown request \"reboot\""),
        ("[1,\n", "not a request"),
        ("\n", "not a request"),
    ] {
        let (errno, answer) = ask(&socket, request);
        assert_eq!(errno, 22, "{request}");
        assert!(answer.as_str().unwrap().starts_with(words), "{request}: {answer}");
    }
    let (errno, answer) = ask(&socket, &"x".repeat(70_000));
    assert_eq!(errno, 22);
    assert!(answer.as_str().unwrap().contains("longer than"));

    assert!(Client::connect(&socket).unwrap().report().is_ok());
}

#[test]
fn a_client_asks_as_often_as_it_likes() {
    let folder = tempdir().unwrap();
    let socket = socket_in(&folder);
    let server = answering(&socket);
    let mut client = Client::connect(&socket).unwrap();
    let report = client.report().unwrap();
    assert_eq!(report.reasons.len(), Reason::ALL.len());
    assert_eq!(report.events.len(), Event::ALL.len());
    assert!(client.report().unwrap().at_ns >= report.at_ns);
    drop(server);
    assert!(!socket.exists(), "the socket goes with the scheduler");
}

#[test]
fn nobody_who_answers_is_said_so() {
    let folder = tempdir().unwrap();
    let socket = socket_in(&folder);
    let error = Client::connect(&socket).unwrap_err().to_string();
    assert!(error.contains("start one with sudo perch run"), "{error}");
    // A scheduler that was killed leaves its socket behind.
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    let error = Client::connect(&socket).unwrap_err().to_string();
    assert!(error.contains("start one with sudo perch run"), "{error}");
    // The next one takes its place, and the one after that does not take it from it.
    let _server = answering(&socket);
    assert!(Client::connect(&socket).unwrap().report().is_ok());
    let error = Server::bind(&socket).unwrap_err();
    assert_eq!(error.to_string(), "another scheduler answers there");
}

#[test]
fn another_scheduler_s_answer_is_not_taken_for_perch_s() {
    let folder = tempdir().unwrap();
    let socket = socket_in(&folder);
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 64];
        let got = stream.read(&mut request).unwrap();
        assert!(request[..got].starts_with(b"{\"req\":\"stats\""));
        let answer = b"{\"errno\":0,\"args\":{\"resp\":{\"nr_kthread_dispatches\":7}}}\n";
        stream.write_all(answer).unwrap();
    });
    let error = Client::connect(&socket).unwrap().report().unwrap_err();
    assert!(error.to_string().starts_with("another scheduler than perch"), "{error}");
    other.join().unwrap();
}

/// A report with something of everything.
fn sample() -> Report {
    let mut report = Report {
        at_ns: 1,
        uptime_ns: 61_000_000_002,
        busy_ns: 2_500_000_000,
        restarts: 1,
        overloaded_cpus: 3,
        partial_tasks: 12,
        partial_refused: 1,
        about: About {
            machine: "A \"quoted\\\" CPU".to_string(),
            kernel: "7.2.12".to_string(),
            modes: "cluster=perch".to_string(),
            band: "nice=-20,priority=5; at most 95 % of 100 ms".to_string(),
            partial: "cgroup=/web".to_string(),
            cpus: 16,
        },
        ..Report::default()
    };
    for (reason, wakeups) in [("target idle", 30), ("cluster scan", 70)] {
        report.reasons.insert(reason.to_string(), Decisions { wakeups });
    }
    report.events.insert("direct".to_string(), 90);
    let waits = Waits { count: 7, sum_ns: 4_500_000, buckets: vec![1, 0, 4, 2] };
    let group = GroupWaits { waits: waits.clone(), limited: 1, limited_ns: 90_000_000 };
    report.waits.insert("queued".to_string(), waits);
    report.group_waits.insert("/web".to_string(), group);
    report
}

#[test]
fn the_exposition_is_openmetrics() {
    let text = openmetrics(Some(&sample()));
    for event in Event::ALL {
        let (name, help) = (event.name(), event.help());
        let family = format!(
            "\n# HELP perch_{name} {help}\n# TYPE perch_{name} counter\nperch_{name}_total "
        );
        assert!(text.contains(&family), "{text}");
    }
    // The file leaves out the families in which all is 0.
    let counts = |line: &str| !line.starts_with('#') && !line.ends_with(" 0");
    let families = text.strip_suffix("# EOF\n").expect("an end").split("# HELP ").skip(1);
    let families = families.filter(|family| family.lines().skip(1).any(counts));
    let text: String = families.map(|family| format!("# HELP {family}")).collect();
    assert_eq!(text + "# EOF\n", include_str!("exposition.txt"));
    let none = openmetrics(None);
    assert!(none.contains("\nperch_up 0\n# EOF\n"), "{none}");
}

/// Reads the samples of an exposition, in order, as a strict parser does.
#[track_caller]
fn samples(text: &str) -> Vec<(String, BTreeMap<String, String>, String)> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
    let mut samples = Vec::new();
    for line in text.split_terminator('\n').filter(|line| !line.starts_with('#')) {
        let (name, mut rest) = line.split_at(line.find(['{', ' ']).expect(line));
        assert!(is_name(name), "{line:?}");
        let mut labels = BTreeMap::new();
        while let Some(label) = rest.strip_prefix(if labels.is_empty() { '{' } else { ',' }) {
            let (name, text) = label.split_once("=\"").expect(line);
            let mut value = String::new();
            let mut chars = text.chars();
            loop {
                match chars.next().expect(line) {
                    '"' => break,
                    '\\' => value.push(match chars.next() {
                        Some('n') => '\n',
                        Some(c @ ('"' | '\\')) => c,
                        _ => panic!("{line:?}"),
                    }),
                    c => value.push(c),
                }
            }
            rest = chars.as_str();
            if let ("le", Ok(bound)) = (name, value.parse::<f64>()) {
                value = bound.to_string();
            }
            assert!(is_name(name), "{line:?}");
            assert!(labels.insert(name.to_string(), value).is_none(), "{line:?}");
        }
        let value = match labels.is_empty() {
            true => rest.strip_prefix(' '),
            false => rest.strip_prefix("} "),
        };
        let value = value.filter(|value| value.parse::<f64>().is_ok());
        samples.push((name.to_string(), labels, value.expect(line).to_string()));
    }
    samples.sort();
    samples
}

#[test]
fn hostile_names_are_labels() {
    let hostile = "/\u{1b}]0;x\u{7}\u{7f}\u{202e}\" ,}1\\\r\nx";
    let mut report = sample();
    let group = GroupWaits::default();
    report.group_waits = [(hostile.to_string(), group)].into();
    report.about.machine = hostile.to_string();
    report.about.modes = format!("{hostile}=perch,cluster={hostile}");
    for text in [openmetrics(Some(&report)), prometheus(Some(&report))] {
        let samples = samples(&text);
        let of = |label: &str| samples.iter().filter_map(|(_, labels, _)| labels.get(label)).next();
        assert_eq!(of("cgroup").unwrap(), hostile);
        assert_eq!(of("machine").unwrap(), hostile);
        assert_eq!(of("cluster").unwrap(), hostile.split(',').next().unwrap());
    }
}

/// Every family of the older text is described before its samples, which have its name.
#[test]
fn the_older_text_has_the_same_samples() {
    let (new, old) = (openmetrics(Some(&sample())), prometheus(Some(&sample())));
    assert_eq!(samples(&new), samples(&old));
    let (mut family, mut of) = ("", "");
    for line in old.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, _] => family = name,
            ["#", "TYPE", name, kind] => {
                assert_eq!(name, family);
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                of = kind;
            }
            ["#", ..] => panic!("{line}"),
            _ => {
                let name = line.split(['{', ' ']).next().and_then(|n| n.strip_prefix(family));
                let ends: &[_] = match of {
                    "histogram" => &[Some("_sum"), Some("_count"), Some("_bucket")],
                    _ => &[Some("")],
                };
                assert!(ends.contains(&name), "{line}");
            }
        }
    }
}

/// Sends a request to a collector's port and returns the answer.
fn get(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A listener that a slow host does not make impatient.
fn patient(folder: &TempDir) -> Listener {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), socket_in(folder)).unwrap();
    listener.with_patience(Duration::from_secs(24 * 3600))
}

#[test]
fn a_collector_gets_what_it_asks_for() {
    let folder = tempdir().unwrap();
    let listener = patient(&folder);
    let address = listener.address().unwrap();
    // It listens for as long as the process lives.
    std::thread::spawn(move || listener.serve());

    let plain = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    let none = get(address, plain);
    assert!(none.starts_with("HTTP/1.1 200 OK\r\n"), "{none}");
    assert!(none.contains("\nperch_up 0\n"), "{none}");

    let _server = answering(&socket_in(&folder));
    let some = get(address, plain);
    assert!(some.contains("Content-Type: text/plain; version=0.0.4"), "{some}");
    assert!(some.contains("\nperch_up 1\n"), "{some}");
    assert!(some.contains("\nperch_direct_total 0\n"), "{some}");
    let new =
        "GET /metrics?x HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    let new = get(address, new);
    assert!(new.contains("Content-Type: application/openmetrics-text"), "{new}");
    assert!(new.ends_with("\n# EOF\n"), "{new}");
    let length = new.split("\r\n\r\n").nth(1).unwrap().len();
    assert!(new.contains(&format!("Content-Length: {length}\r\n")), "{new}");

    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("\0\0\r\n\r\n", "400"),
    ] {
        let answer = get(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

#[test]
fn slow_clients_do_not_keep_a_collector_away() {
    let folder = tempdir().unwrap();
    let listener = patient(&folder);
    let address = listener.address().unwrap();
    std::thread::spawn(move || listener.serve());
    let slow = (0..40).map(|_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HT").map(|()| stream)
    });
    let slow: Vec<_> = slow.collect();
    let answer = get(address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    drop(slow);
}
