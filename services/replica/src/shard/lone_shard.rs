//! A shard on a journal of its own with no server round it, for tests.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use quorate_journal::{Event, Journal, Options};
use quorate_types::ServerId;

use super::Shard;
use super::io::Io;
use crate::disk::JournalPort;
use crate::shared::{Plaintext, Shared};

/// Server 1's only shard. What its journal has done goes to `told`; clients are accepted without TLS.
pub(crate) fn lone_shard(dir: &Path, told: impl Fn(Event) + Send + Sync + 'static) -> Shard {
    let options = Options {
        segment_bytes: 20 << 20,
        ..Options::default()
    };
    let (journal, _) = Journal::open(dir, options, |_| {}).unwrap();
    let plaintext = Plaintext {
        is_accepted: true,
        is_dialed: false,
    };
    let (news, _) = tokio::sync::mpsc::unbounded_channel();
    let shared = Arc::new(Shared::new("i1".to_string(), plaintext, news, None));
    shared.set_server_id(ServerId(1));
    let (inbox, _) = tokio::sync::mpsc::unbounded_channel();
    shared.set_shards(vec![inbox]);
    let (io, _work) = Io::new(0, shared, JournalPort::new(Arc::new(journal), told));
    Shard {
        groups: Default::default(),
        io,
        parted: Vec::new(),
        lost: HashSet::new(),
    }
}
