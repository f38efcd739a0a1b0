//! Recorded figures: one line of JSON for each measurement, in a file for each figure.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

/// As `loadtest/results/figure.schema.json` describes it for the writers of all languages.
#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    value: f64,
    unit: &'a str,
    goal: Option<f64>,
    met: Option<bool>,
    command: &'a str,
    commit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    machine: &'a str,
}

/// The digest of the sources that figures speak for, as `quorate-evidence source` prints it.
const SOURCE: &str = "QUORATE_SOURCE";

pub struct Figures {
    folder: PathBuf,
    command: String,
    commit: String,
    source: Option<String>,
    machine: String,
}

impl Figures {
    /// Records figures in files of `folder`, with the command, commit and machine of the measurement. To be called before
    /// it: the commit may be another one at its end.
    pub fn new(folder: &Path, command: String) -> Self {
        Self {
            folder: folder.to_path_buf(),
            command,
            commit: commit(),
            source: std::env::var(SOURCE).ok(),
            machine: machine(),
        }
    }

    /// Appends one figure; greater is better. `true`: it is at least its goal, or has none.
    pub fn write(&self, name: &str, value: f64, unit: &str, goal: Option<f64>) -> Result<bool, String> {
        let is_named_well = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        if !is_named_well {
            return Err(format!(
                "{name:?} is no name for a figure: letters, digits, _, - and . only"
            ));
        }
        let met = goal.map(|goal| value >= goal);
        let value = (value * 1_000.0).round() / 1_000.0;
        let (command, commit, machine) = (&self.command[..], &self.commit[..], &self.machine[..]);
        let line = Line {
            name,
            value,
            unit,
            goal,
            met,
            command,
            commit,
            source: self.source.as_deref(),
            machine,
        };
        let mut text = serde_json::to_string(&line).expect("a line is plain data");
        text.push('\n');
        let path = self.folder.join(format!("{name}.jsonl"));
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(met.unwrap_or(true))
    }
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
    let memory = read("/proc/meminfo");
    let memory_kib = memory.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?
            .trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<u64>()
            .ok()
    });
    let memory_gib = memory_kib.unwrap_or(0) as f64 / f64::from(1 << 20);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} × {model}, {memory_gib:.0} GiB, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_lines_with_their_goal_judged() {
        let folder = std::env::temp_dir().join(format!("quorate-figures-{}", std::process::id()));
        let figures = Figures::new(&folder, "make bench".to_string());
        assert_eq!(figures.write("rate", 10.0, "1/s", Some(9.0)), Ok(true));
        assert_eq!(figures.write("rate", 10.0, "1/s", Some(11.0)), Ok(false));
        assert!(figures.write("../rate", 10.0, "1/s", None).is_err());
        let text = fs::read_to_string(folder.join("rate.jsonl")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(
            (lines.len(), &lines[0]["met"], &lines[1]["met"]),
            (2, &true.into(), &false.into())
        );
        assert_eq!(lines[0]["command"], "make bench");
    }

    /// Whether a JSON value is of one of the schema's types.
    fn is_of(value: &serde_json::Value, types: &serde_json::Value) -> bool {
        let name = match value {
            serde_json::Value::Null => "null",
            serde_json::Value::Bool(_) => "boolean",
            serde_json::Value::Number(_) => "number",
            serde_json::Value::String(_) => "string",
            _ => "other",
        };
        types == name
            || types
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name))
    }

    #[test]
    fn lines_have_the_form_that_all_languages_share() {
        let schema = include_str!("../../../../loadtest/results/figure.schema.json");
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        let folder = std::env::temp_dir().join(format!("quorate-figures-form-{}", std::process::id()));
        let figures = Figures::new(&folder, "make bench".to_string());
        assert_eq!(figures.write("rate", 10.0, "1/s", Some(9.0)), Ok(true));
        assert_eq!(figures.write("rate", 10.0, "1/s", None), Ok(true));
        let text = fs::read_to_string(folder.join("rate.jsonl")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let required = schema["required"].as_array().unwrap();
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let line = line.as_object().unwrap();
            assert!(
                required
                    .iter()
                    .all(|name| line.contains_key(name.as_str().unwrap()))
            );
            for (name, value) in line {
                assert!(
                    is_of(value, &schema["properties"][name]["type"]),
                    "{name}: {value}"
                );
            }
        }
    }
}
