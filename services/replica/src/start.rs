//! Starting, in order, and stopping: disk, listener, shards, registration, ready.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_journal::{Journal, OpenError, Options};
use quorate_telemetry::spans;
use quorate_types::control::HeldGroup;
use quorate_types::{Durability, ServerId};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{LocalSet, spawn_local};

use crate::certificate::Certificates;
use crate::control::{self, Me, Standing};
use crate::disk::{JournalPort, Scan};
use crate::flags::Flags;
use crate::identity::{self, Identity};
use crate::shard::{self, ShardMessage};
use crate::shared::{Plaintext, Shared};
use crate::usage::Exports;
use crate::{Exit, accept, usage};

/// How long a server waits for the coordinator at its start before it gives up.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(60);
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// How often the journal is asked to release what no group needs.
const RELEASE_EVERY: Duration = Duration::from_secs(5);
/// How long a stop waits for a shard.
const STOP_GRACE: Duration = Duration::from_secs(3);

pub fn run(flags: Flags, exports: Exports) -> Result<(), Exit> {
    flags.validate().map_err(Exit::BadFlags)?;
    std::fs::create_dir_all(&flags.data_dir)
        .map_err(|e| Exit::DiskUnusable(format!("cannot create {}: {e}", flags.data_dir.display())))?;
    let identity = identity::load(&flags.data_dir).map_err(Exit::DiskUnusable)?;
    let join_token = read_join_token(&flags, identity.is_some())?;
    let (join_secret, pin) = join_token.as_deref().map_or((None, None), |token| {
        let (secret, pin) = quorate_certificates::pin::split(token);
        (Some(secret.to_string()), pin)
    });
    let certificates = Certificates::load(&flags.data_dir, pin).map_err(Exit::DiskUnusable)?;
    certificates.trust().map_err(Exit::BadFlags)?;
    let me = identity
        .as_ref()
        .map_or(ServerId(0), |identity| identity.server_id);
    let (journal, scan) = open_journal(&flags, me, identity.is_some())?;

    let (news, news_inbox) = mpsc::unbounded_channel();
    let incarnation = format!("{:016x}", rand::random::<u64>());
    let previous_incarnations = note_start(&flags.data_dir, identity.as_ref(), &incarnation);
    let (spans, spans_inbox) = spans::channel();
    let shared = Arc::new(Shared::new(
        incarnation,
        Plaintext {
            is_accepted: flags.allow_plaintext,
            is_dialed: flags.plaintext_links,
        },
        news,
        exports.tracer.is_some().then_some(spans),
    ));
    shared.set_server_id(me);
    shared
        .catchup_bytes_per_s
        .store(flags.catchup_bytes_per_s(), std::sync::atomic::Ordering::Relaxed);

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Exit::DependencyMissing(format!("cannot start the runtime: {e}")))?;
    LocalSet::new().block_on(&runtime, async move {
        let listener = bind(&flags)?;
        let listening = listener
            .local_addr()
            .map_err(|e| Exit::PortInUse(e.to_string()))?;
        let address = flags.advertise.clone().unwrap_or_else(|| listening.to_string());
        let shards = start_shards(&flags, &shared, &journal)?;
        let held = hand_over(&shared, scan);
        let me = Me {
            data_dir: flags.data_dir.clone(),
            coordinator: flags.coordinator.clone(),
            join_token: join_secret,
            identity,
            certificates,
            name: flags.name(),
            address: address.clone(),
            capacity: flags.capacity(),
            failure_domain: flags.failure_domain.clone(),
            region: flags.region.clone(),
            held,
            previous_incarnations,
        };
        let (standing, mut standing_watch) = watch::channel(Standing::Unregistered {
            trouble: "not tried yet".to_string(),
        });
        spawn_local(control::run(me, shared.clone(), news_inbox, standing));
        wait_registered(&flags.coordinator, &mut standing_watch).await?;

        spawn_local(accept::run(listener, shared.clone()));
        spawn_local(release_journal(shared.clone(), journal.clone()));
        let usage = usage::start(&flags, shared.clone(), journal.clone(), exports, spans_inbox)?;
        announce(&flags.data_dir, shared.server_id(), &address);
        let ended = until_stopped(&mut standing_watch).await;
        tracing::info!("stopping");
        usage.stop().await;
        stop(&shared, shards).await;
        ended
    })
}

/// Writes this start down before the coordinator hears of it; the starts before it.
fn note_start(data_dir: &Path, identity: Option<&Identity>, incarnation: &str) -> Vec<String> {
    let Some(identity) = identity else {
        return Vec::new();
    };
    if let Err(error) = identity::save(data_dir, &identity.started(incarnation)) {
        // A full disk is no reason not to start. At worst the next start learns anew what it need not.
        tracing::warn!(%error, "cannot note this start in identity.json");
    }
    identity.incarnations.clone()
}

fn read_join_token(flags: &Flags, has_identity: bool) -> Result<Option<String>, Exit> {
    let Some(path) = &flags.join_token_file else {
        return if has_identity {
            Ok(None)
        } else {
            Err(Exit::BadFlags(
                "this server has not joined yet: pass --join-token-file".to_string(),
            ))
        };
    };
    match std::fs::read_to_string(path) {
        Ok(token) => Ok(Some(token.trim().to_string())),
        Err(_) if has_identity => Ok(None),
        Err(error) => Err(Exit::BadFlags(format!(
            "cannot read the join token {}: {error}",
            path.display()
        ))),
    }
}

fn open_journal(flags: &Flags, me: ServerId, has_identity: bool) -> Result<(Arc<Journal>, Scan), Exit> {
    let mut scan = Scan::default();
    let mut foreign = None;
    let options = Options {
        segment_bytes: flags.journal_segment_bytes,
        ..Options::default()
    };
    let dir = flags.data_dir.join("journal");
    let (journal, recovery) = Journal::open(&dir, options, |record| {
        if foreign.is_none() {
            foreign = scan.record(me, &record).err();
        }
    })
    .map_err(|error| match error {
        OpenError::Locked(_) => Exit::DiskUnusable(format!("{error}; is another server using this folder?")),
        _ => Exit::DiskUnusable(error.to_string()),
    })?;
    scan.finish();
    if let Some(reason) = foreign {
        return Err(Exit::DiskUnusable(format!("{}: {reason}", dir.display())));
    }
    if recovery.records > 0 && !has_identity {
        return Err(Exit::DiskUnusable(format!(
            "{} holds records but identity.json is missing; restore it, or wipe the folder to join anew",
            dir.display()
        )));
    }
    for damage in &recovery.damages {
        tracing::error!(
            ?damage,
            "part of the journal is damaged; groups with a hole are learned anew"
        );
    }
    tracing::info!(records = recovery.records, groups = scan.groups.len(), torn = ?recovery.torn, "journal read");
    Ok((Arc::new(journal), scan))
}

fn bind(flags: &Flags) -> Result<TcpListener, Exit> {
    quorate_transport::bind(flags.listen).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Exit::PortInUse(format!(
            "{} is in use by another process; stop it, or choose another --listen",
            flags.listen
        )),
        _ => Exit::BadFlags(format!("cannot listen on {}: {error}", flags.listen)),
    })
}

type ShardThread = std::thread::JoinHandle<()>;

fn start_shards(
    flags: &Flags,
    shared: &Arc<Shared>,
    journal: &Arc<Journal>,
) -> Result<Vec<ShardThread>, Exit> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..flags.shards).map(|_| mpsc::unbounded_channel()).unzip();
    shared.set_shards(senders.clone());
    let mut threads = Vec::new();
    for (index, (inbox, sender)) in inboxes.into_iter().zip(senders).enumerate() {
        let port = JournalPort::new(journal.clone(), move |event| {
            let _stopped = sender.send(ShardMessage::Journal(event)).is_err();
        });
        let shared = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(move || shard::run::run(index, shared, port, inbox))
            .map_err(|e| Exit::DependencyMissing(format!("cannot start a thread: {e}")))?;
        threads.push(thread);
    }
    Ok(threads)
}

/// Gives recovered groups to their shards; says what the server holds. Damaged groups are dropped.
fn hand_over(shared: &Shared, scan: Scan) -> Vec<HeldGroup> {
    let mut held = Vec::new();
    for (group_id, recovered) in scan.groups {
        let shard = shared.shard_of_group(group_id);
        let damage = scan.damaged.get(&group_id);
        if damage.is_none() {
            let log = recovered.replica.log();
            let last_index = log.last_index();
            let epoch = log.epoch_at(last_index).unwrap_or(0);
            held.push(HeldGroup {
                group_id,
                epoch,
                durability: Durability::Persistent,
                last_index,
                damaged: false,
            });
        }
        let (replica, places) = (Box::new(recovered.replica), recovered.places);
        shared.send(
            shard,
            ShardMessage::Recovered {
                group_id,
                replica,
                places,
            },
        );
        if let Some(reason) = damage {
            tracing::error!(group = %group_id, reason, "the group's records have a hole; it will be learned anew");
            shared.send(shard, ShardMessage::Drop(group_id));
        }
    }
    held
}

async fn wait_registered(coordinator: &str, standing: &mut watch::Receiver<Standing>) -> Result<(), Exit> {
    let deadline = tokio::time::Instant::now() + REGISTER_TIMEOUT;
    loop {
        let trouble = match &*standing.borrow_and_update() {
            Standing::Registered => return Ok(()),
            Standing::Refused { message } => return Err(Exit::BadFlags(message.clone())),
            Standing::Unregistered { trouble } => trouble.clone(),
        };
        if tokio::time::Instant::now() >= deadline {
            return Err(Exit::DependencyMissing(format!(
                "the coordinator at {coordinator} cannot be reached: {trouble}"
            )));
        }
        let _changed_or_not = tokio::time::timeout(PROGRESS_EVERY, standing.changed())
            .await
            .is_ok();
        if matches!(&*standing.borrow(), Standing::Unregistered { .. }) {
            tracing::info!(coordinator, trouble, "waiting for the coordinator");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn announce(data_dir: &Path, server_id: ServerId, address: &str) {
    let ready = serde_json::json!({ "server_id": server_id, "address": address, "pid": std::process::id() });
    if let Err(error) = std::fs::write(data_dir.join("ready.json"), ready.to_string()) {
        tracing::warn!(%error, "cannot write ready.json");
    }
    println!("ready server_id={server_id} address={address}");
    let _closed = std::io::stdout().flush().is_err();
}

async fn until_stopped(standing: &mut watch::Receiver<Standing>) -> Result<(), Exit> {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return Err(Exit::DependencyMissing("cannot listen for signals".to_string()));
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            changed = standing.changed() => {
                if changed.is_err() {
                    std::future::pending::<()>().await;
                }
                if let Standing::Refused { message } = &*standing.borrow_and_update() {
                    return Err(Exit::BadFlags(message.clone()));
                }
            }
        }
    }
}

async fn stop(shared: &Shared, shards: Vec<ShardThread>) {
    shared.broadcast(|| ShardMessage::Stop);
    let joined = tokio::task::spawn_blocking(move || {
        for thread in shards {
            let _panicked = thread.join().is_err();
        }
    });
    let _in_time = tokio::time::timeout(STOP_GRACE, joined).await.is_ok();
}

/// Lets the journal reuse segments that no group needs.
async fn release_journal(shared: Arc<Shared>, journal: Arc<Journal>) {
    loop {
        tokio::time::sleep(RELEASE_EVERY).await;
        // Taken first: what is appended while the shards answer is newer than this.
        let newest = journal.stats().durable_lsn;
        let mut oldest = newest;
        for shard in 0..shared.shard_count() {
            let (sender, receiver) = oneshot::channel();
            shared.send(shard, ShardMessage::OldestLsn(sender));
            match receiver.await {
                Ok(Some(lsn)) => oldest = oldest.min(lsn),
                Ok(None) => {}
                Err(_) => return,
            }
        }
        journal.release_before(oldest);
    }
}
