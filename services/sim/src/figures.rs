//! Figures that are kept, in the project's format: one line of JSON for each.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    value: u64,
    unit: &'a str,
    goal: u64,
    met: bool,
    command: &'a str,
    commit: String,
    machine: String,
}

/// Appends a figure of which more is better to `sim.jsonl` in `folder`.
pub fn write(
    folder: &Path,
    name: &str,
    value: u64,
    unit: &str,
    goal: u64,
    command: &str,
) -> Result<(), String> {
    let line = Line {
        name,
        value,
        unit,
        goal,
        met: value >= goal,
        command,
        commit: commit(),
        machine: machine(),
    };
    let mut text = serde_json::to_string(&line).expect("a line is plain data");
    text.push('\n');
    let path = folder.join("sim.jsonl");
    let written = fs::create_dir_all(folder)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn commit() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => "unknown".to_string(),
    }
}

fn machine() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} × {model}, Linux {}", kernel.trim())
}
