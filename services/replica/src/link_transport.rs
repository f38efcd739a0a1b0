//! How this server's links go: by its flags, by the machine's self-test, and by what the machine has.

use std::io::ErrorKind;
use std::path::Path;

use quorate_one_sided::{Fabric, Way};
use quorate_types::control::LinkTransport;

use crate::exit::Exit;
use crate::flags::Flags;
use crate::selftest::Outcome;

pub struct Chosen {
    /// One-sided writes, if links may go by them.
    pub fabric: Option<Fabric>,
    /// For the coordinator.
    pub told: LinkTransport,
}

/// Links go by sockets where one-sided writes do not work, which is said. A self-test that left no result has failed: its
/// process may have crashed in a provider. An unreadable result is an error.
pub fn choose(flags: &Flags) -> Result<Chosen, Exit> {
    let wanted = flags
        .transport
        .ofi_provider
        .map_or("ofi", |provider| provider.name());
    let tested = flags
        .ofi_selftest
        .as_deref()
        .map(|file| read(file, wanted))
        .transpose()?;
    let Some(fabric) = flags.one_sided() else {
        let told = LinkTransport {
            transport: "tcp".into(),
            provider: tested.as_ref().map(|outcome| outcome.provider.clone()),
            selftest: tested.map(|outcome| outcome.words),
        };
        return Ok(Chosen { fabric: None, told });
    };
    let provider = fabric.provider.name();
    let words = tested.as_ref().map(|outcome| outcome.words.clone());
    let trouble = match tested {
        Some(outcome) if outcome.provider != provider => {
            Some(format!("the self-test was of the provider {}", outcome.provider))
        }
        Some(outcome) if !outcome.is_ok => Some(outcome.words),
        _ => Way::try_open(&fabric).err().map(|error| error.to_string()),
    };
    if let Some(trouble) = &trouble {
        tracing::warn!(provider, trouble, "no one-sided writes: links go by tcp");
    }
    Ok(Chosen {
        told: LinkTransport {
            transport: if trouble.is_none() { "ofi" } else { "tcp" }.into(),
            provider: Some(provider.into()),
            selftest: trouble.clone().or(words),
        },
        fabric: trouble.is_none().then_some(fabric),
    })
}

fn read(file: &Path, provider: &str) -> Result<Outcome, Exit> {
    let wrong = |reason: String| {
        Exit::BadFlags(format!(
            "--ofi-selftest {}: {reason}; `quorate-replica selftest ofi --provider … --out` writes it",
            file.display()
        ))
    };
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Outcome {
                provider: provider.into(),
                is_ok: false,
                words: "the self-test left no result".into(),
            });
        }
        text => text.map_err(|e| wrong(e.to_string()))?,
    };
    serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))
}
