//! Starting, in order, and stopping: disk, listener, shards, registration, ready.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_certificates::pin;
use quorate_journal::Journal;
use quorate_one_sided::Fabric;
use quorate_telemetry::spans::{self, SpanSender};
use quorate_types::control::ToCoordinator;
use quorate_types::coordinators::KnownCoordinators;
use quorate_types::{Room, ServerId};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};

use crate::certificate::Certificates;
use crate::control::{self, Me, Standing};
use crate::exit::Exit;
use crate::flags::Flags;
use crate::identity::{self, Identity};
use crate::journal_port::JournalPort;
use crate::messages::ShardMessage;
use crate::place_keeper::PlaceKeeper;
use crate::shared::{Plaintext, Settings, Shared};
use crate::storage::Storage;
use crate::telemetry::{self, Exports};
use crate::{accept, burst_task, capacity_task, guarantee_task, hang_task, link_transport, room, shard};

/// How long a server waits for the coordinator at its start before it gives up.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(60);
const PROGRESS_EVERY: Duration = Duration::from_secs(5);
/// How long a stop waits for a shard.
const STOP_GRACE: Duration = Duration::from_secs(3);

pub fn run(flags: Flags, exports: Exports) -> Result<(), Exit> {
    flags.validate().map_err(Exit::BadFlags)?;
    create(&flags.data_dir)?;
    let identity = identity::load(&flags.data_dir).map_err(Exit::DiskUnusable)?;
    let places = PlaceKeeper::start(&flags.data_dir).map_err(Exit::DiskUnusable)?;
    let join_token = read_join_token(&flags, identity.is_some())?;
    let (join_secret, pin) = secret_and_pin(join_token.as_deref());
    let certificates = Certificates::load(&flags.data_dir, pin).map_err(Exit::DiskUnusable)?;
    certificates.trust().map_err(Exit::BadFlags)?;
    let me = number_of(identity.as_ref());
    let mut storage = Storage::open(&flags, me, identity.is_some())?;
    let journal = storage.journal.clone();

    let (updates, updates_inbox) = mpsc::unbounded_channel();
    let incarnation = format!("{:016x}", rand::random::<u64>());
    let previous_incarnations = note_start(&flags.data_dir, identity.as_ref(), &incarnation);
    let (spans, spans_inbox) = spans::channel();
    let spans = exports.tracer.is_some().then_some(spans);
    let chosen = link_transport::choose(&flags)?;
    let (shared, room) = share(&flags, me, incarnation, chosen.fabric, updates, spans);

    LocalSet::new().block_on(&runtime()?, async move {
        let listener = bind(&flags)?;
        let listening = listener
            .local_addr()
            .map_err(|e| Exit::PortInUse(e.to_string()))?;
        let address = flags.advertise.clone().unwrap_or_else(|| listening.to_string());
        let shards = start_shards(&flags, &shared, &journal)?;
        let held = storage.hand_over(&shared);
        let group_logs = storage.start(&shared)?;
        let me = Me {
            data_dir: flags.data_dir.clone(),
            coordinators: known_coordinators(&flags, identity.as_ref()),
            join_token: join_secret,
            identity,
            certificates,
            name: flags.name(),
            address: address.clone(),
            capacity: flags.capacity(),
            room,
            failure_domain: flags.failure_domain.clone(),
            region: flags.region.clone(),
            held,
            previous_incarnations,
            places,
            links: chosen.told,
        };
        spawn_local(hang_task::run(shared.clone(), journal.clone(), me.places.watch()));
        let (standing, mut standing_watch) = watch::channel(Standing::Unregistered {
            trouble: "not tried yet".to_string(),
        });
        spawn_local(control::run(me, shared.clone(), updates_inbox, standing));
        wait_registered(&flags.coordinator.join(", "), &mut standing_watch).await?;

        spawn_local(accept::run(listener, shared.clone()));
        start_sharing(&flags, &shared, &journal);
        let telemetry = telemetry::start(&flags, shared.clone(), journal.clone(), exports, spans_inbox)?;
        announce(&flags.data_dir, shared.server_id(), &address);
        if flags.measure_isolation {
            spawn_local(toggle_isolation(shared.clone()));
        }
        let ended = until_stopped(&mut standing_watch).await;
        tracing::info!("stopping");
        telemetry.stop().await;
        stop(&shared, shards).await;
        drop(group_logs);
        ended
    })
}

/// Tasks that say how much groups may use.
fn start_sharing(flags: &Flags, shared: &Arc<Shared>, journal: &Arc<Journal>) {
    burst_task::start(flags, shared);
    guarantee_task::start(shared);
    capacity_task::start(flags, shared, journal);
}

fn known_coordinators(flags: &Flags, identity: Option<&Identity>) -> KnownCoordinators {
    let term = identity.map_or(0, |identity| identity.coordinator_term);
    KnownCoordinators::new(flags.coordinator.clone(), rand::random()).since(term)
}

fn create(data_dir: &Path) -> Result<(), Exit> {
    std::fs::create_dir_all(data_dir)
        .map_err(|e| Exit::DiskUnusable(format!("cannot create {}: {e}", data_dir.display())))
}

/// Before the first registration it has none.
fn number_of(identity: Option<&Identity>) -> ServerId {
    identity.map_or(ServerId(0), |identity| identity.server_id)
}

fn runtime() -> Result<Runtime, Exit> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|e| Exit::DependencyMissing(format!("cannot start the runtime: {e}")))
}

/// The state that all threads of the server see, and the room that it offers for replicas.
fn share(
    flags: &Flags,
    me: ServerId,
    incarnation: String,
    one_sided: Option<Fabric>,
    updates: mpsc::UnboundedSender<ToCoordinator>,
    spans: Option<SpanSender>,
) -> (Arc<Shared>, Room) {
    let plaintext = Plaintext {
        is_accepted: flags.allow_plaintext,
        is_dialed: flags.plaintext_links,
    };
    let offer = room::offer(flags);
    let mut settings = Settings::new(flags.capacity(), flags.catchup_bytes_per_s(), offer.pool_bytes);
    settings.one_sided = one_sided;
    let shared = Arc::new(Shared::new(incarnation, plaintext, settings, updates, spans));
    shared.set_server_id(me);
    (shared, offer.room)
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

/// The parts of a join token.
fn secret_and_pin(token: Option<&str>) -> (Option<String>, Option<&str>) {
    token.map_or((None, None), |token| {
        let (secret, pin) = pin::split(token);
        (Some(secret.to_string()), pin)
    })
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
    shared.shards.set(senders.clone());
    let mut threads = Vec::new();
    for (index, (inbox, sender)) in inboxes.into_iter().zip(senders).enumerate() {
        let port = JournalPort::new(journal.clone(), move |event| {
            let _stopped = sender.send(ShardMessage::Journal(event)).is_err();
        });
        let shared = shared.clone();
        let spin = Duration::from_micros(u64::from(flags.spin_us()));
        let thread = std::thread::Builder::new()
            .name(format!("shard-{index}"))
            .spawn(move || shard::run::run(index, shared, port, inbox, spin))
            .map_err(|e| Exit::DependencyMissing(format!("cannot start a thread: {e}")))?;
        threads.push(thread);
    }
    Ok(threads)
}

async fn wait_registered(coordinators: &str, standing: &mut watch::Receiver<Standing>) -> Result<(), Exit> {
    let deadline = tokio::time::Instant::now() + REGISTER_TIMEOUT;
    loop {
        let trouble = match &*standing.borrow_and_update() {
            Standing::Registered => return Ok(()),
            Standing::Refused { message } => return Err(Exit::BadFlags(message.clone())),
            Standing::Unregistered { trouble } => trouble.clone(),
        };
        if tokio::time::Instant::now() >= deadline {
            return Err(Exit::DependencyMissing(format!(
                "no coordinator at {coordinators} lets this server in: {trouble}"
            )));
        }
        let _changed_or_not = tokio::time::timeout(PROGRESS_EVERY, standing.changed())
            .await
            .is_ok();
        if matches!(&*standing.borrow(), Standing::Unregistered { .. }) {
            tracing::info!(coordinators, trouble, "waiting for the coordinator");
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

/// For measuring only: each signal turns isolation off, or on again.
async fn toggle_isolation(shared: Arc<Shared>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut toggled) = signal(SignalKind::user_defined1()) else {
        return tracing::error!("cannot listen for SIGUSR1");
    };
    while toggled.recv().await.is_some() {
        let is_off = shared.settings.toggle_isolation();
        tracing::warn!(is_off, "isolation was switched for a measurement");
    }
}

async fn stop(shared: &Shared, shards: Vec<ShardThread>) {
    shared.shards.broadcast(|| ShardMessage::Stop);
    let joined = tokio::task::spawn_blocking(move || {
        for thread in shards {
            let _panicked = thread.join().is_err();
        }
    });
    let _in_time = tokio::time::timeout(STOP_GRACE, joined).await.is_ok();
}
