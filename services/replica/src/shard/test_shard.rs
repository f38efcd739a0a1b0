//! A shard on a journal of its own with no server round it, for tests.

use std::path::Path;
use std::sync::Arc;

use quorate_journal::{Event, Journal, JournalOptions};
use quorate_types::ServerId;
use quorate_types::cost::ResourceVector;
use quorate_types::limits::CATCHUP_BYTES_PER_S_MIN;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::Shard;
use super::disk::DiskWork;
use crate::journal_port::JournalPort;
use crate::messages::ShardMessage;
use crate::shared::{Plaintext, Settings, Shared};

pub struct TestShard {
    pub shard: Shard,
    pub work: UnboundedReceiver<DiskWork>,
    /// Messages of the shard to another one.
    pub other: UnboundedReceiver<ShardMessage>,
}

/// Server 1's only shard. Its journal's events go to `on_event`; clients are accepted without TLS.
pub fn test_shard(dir: &Path, on_event: impl Fn(Event) + Send + Sync + 'static) -> TestShard {
    let options = JournalOptions {
        segment_bytes: 64 << 20,
        ..JournalOptions::default()
    };
    let (journal, _) = Journal::open(dir, options, |_| {}).unwrap();
    on_journal(Arc::new(journal), 1, on_event)
}

/// The first of so many shards.
pub fn on_journal(
    journal: Arc<Journal>,
    shards: usize,
    on_event: impl Fn(Event) + Send + Sync + 'static,
) -> TestShard {
    let plaintext = Plaintext {
        is_accepted: true,
        is_dialed: false,
    };
    let settings = Settings::new(
        ResourceVector::new(1.0, 1.25e9, 400_000.0),
        CATCHUP_BYTES_PER_S_MIN,
        u64::MAX,
    );
    let shared = Arc::new(Shared::new(
        "i1".to_string(),
        plaintext,
        settings,
        unbounded_channel().0,
        None,
    ));
    shared.set_server_id(ServerId(1));
    let (sender, other) = unbounded_channel();
    let own = unbounded_channel().0;
    let senders = std::iter::once(own).chain(std::iter::repeat_n(sender, shards - 1));
    shared.shards.set(senders.collect());
    let (shard, work) = Shard::new(0, shared, JournalPort::new(journal, on_event));
    TestShard { shard, work, other }
}
