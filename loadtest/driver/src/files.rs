//! Files that the commands read and write.

use std::fs;
use std::path::Path;

use quorate_client::Handle;

use crate::runs::Run;

pub fn read_handle(path: &Path, plaintext: bool) -> Result<Handle, String> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut handle = Handle::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    if plaintext {
        handle.tls = None;
    }
    Ok(handle)
}

/// The runs of a result, with their acknowledged entries.
pub fn runs_of(path: &Path) -> Result<Vec<Run>, String> {
    let wrong = |what: String| format!("{}: {what}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_value(json["runs"].clone())
        .map_err(|error| wrong(format!("not a result of append or steady: {error}")))
}

pub fn write_json(path: Option<&Path>, what: &impl serde::Serialize) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let json = serde_json::to_string(what).expect("a result is plain data");
    fs::write(path, json + "\n").map_err(|error| format!("cannot write {}: {error}", path.display()))
}
