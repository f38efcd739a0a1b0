//! Everything around the state machine: start-up, sockets, clock, disk, keys.
//!
//! - [`engine`]: the task that owns the engine and the log
//! - [`control`]: connections of replica servers
//! - [`http`]: calls of the API
//! - [`secret`]: tokens and keys
//! - `profile_file`: the cost profile, read again when its file changes
//! - `key_file`: the clients' keys are read again when their file changes

pub mod control;
pub mod engine;
pub mod http;
mod key_file;
mod profile_file;
pub mod secret;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quorate_certificates::Authority;
use quorate_placement::{Choice, Profile};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::engine::{Engine, Settings};
use crate::exit::{Failure, FailureCode};
use crate::leases::LeaseTimes;
use crate::log::{DurableLog, Timed};
use crate::options::{ForeignProfile, Options};
use crate::state::command::Command;
use crate::state::placement::{Foreign, Headroom, Placement, Replacements};
use crate::state::{State, apply};
use crate::suspicions::SuspicionTimes;
use engine::{EngineTask, Secrets, unix_ms};
use secret::PeerKey;

/// Runs until a signal asks it to stop.
pub async fn run(options: Options) -> Result<(), Failure> {
    if let Some(problem) = options.problem() {
        return Err(Failure::configuration(problem));
    }
    let profiles = profile_file::Source::of(&options);
    let profile = profiles.read()?;
    let placement = placement(&options);
    let admin_token = secret::read_admin_token(&options.admin_token_file)?;
    let client_keys = secret::read_client_keys(&options.token_public_keys)?;
    let read_keys = client_keys.clone();
    create_data_dir(&options.data_dir)?;
    let (log, state) = recover(&options.data_dir, profile, &profiles, placement)?;
    let peer_key = PeerKey::load_or_create(&options.data_dir)?;
    let authority = Authority::load_or_create(&options.data_dir).map_err(|e| Failure::disk(e.to_string()))?;
    let authority = Arc::new(authority);
    let acceptor = control::acceptor(authority.clone())?;
    let control = listen(options.listen_control, "--listen-control").await?;
    let http = listen(options.listen_http, "--listen-http").await?;

    let started = Instant::now();
    let times = LeaseTimes {
        lease_ms: options.lease_ms,
        reconnect_grace_ms: options.reconnect_grace_ms,
    };
    let settings = Settings {
        heartbeat_ms: options.heartbeat_ms,
        leases: times,
        suspicions: SuspicionTimes {
            unreachable_ms: options.unreachable_ms,
            slow_ms: options.slow_ms,
            well_ms: options.well_ms,
            stale_ms: options.heartbeat_ms * 3,
        },
        client_keys,
        peer_keys: peer_key.jwks().clone(),
    };
    let secrets = Secrets {
        peer_key,
        authority: authority.clone(),
        certificate_life: Duration::from_secs(options.certificate_life_s),
    };
    let engine = Engine::new(state, settings, 0);
    let (engine, handle, inputs) = EngineTask::new(engine, log, secrets, started);

    announce(&options.data_dir, &control, &http)?;
    let (stopping, stop) = watch::channel(false);
    tokio::spawn(control::serve(control, acceptor, handle.inputs.clone()));
    tokio::spawn(key_file::follow(
        options.token_public_keys,
        read_keys,
        handle.inputs.clone(),
    ));
    tokio::spawn(profile_file::follow(profiles, handle.clone()));
    tokio::spawn(http::serve(
        http,
        http::Context::new(handle, &admin_token, &authority),
    ));
    tokio::spawn(async move {
        stop_signal().await;
        info!("stopping: asked to");
        let _ = stopping.send(true);
    });
    engine.run(inputs, stop).await
}

fn placement(options: &Options) -> Placement {
    Placement {
        choice: Choice::Shape,
        headroom: options.recovery_headroom,
        foreign: match options.foreign_profile {
            ForeignProfile::Warn => Foreign::Used,
            ForeignProfile::Refuse => Foreign::Refused,
        },
        replacements: Replacements::HeaviestFirst,
        // The more servers a server shares groups with, the more of them find room when it fails; and the more sets of
        // servers there are whose failure together loses a group. So it is for those who keep room.
        is_spread: options.recovery_headroom != Headroom::default(),
    }
}

fn create_data_dir(data_dir: &Path) -> Result<(), Failure> {
    let created = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(data_dir);
    created.map_err(|e| Failure::disk(format!("--data-dir {}: {e}", data_dir.display())))
}

/// The state as the log has it, with the profile in use; the log is rewritten as a snapshot when it is long.
fn recover(
    data_dir: &Path,
    profile: Profile,
    profiles: &profile_file::Source,
    placement: Placement,
) -> Result<(DurableLog, State), Failure> {
    let (mut log, recovered) = DurableLog::open(data_dir)?;
    let fresh = recovered.snapshot.is_none() && recovered.commands.is_empty();
    let mut state = recovered.snapshot.unwrap_or_else(|| State::new(profile.clone()));
    state.restore();
    // Replayed under the profiles of their time: the first one is in the log as well.
    for Timed { at_ms, command } in &recovered.commands {
        apply(&mut state, *at_ms, command);
    }
    state.validate().map_err(|problem| {
        Failure::disk(format!(
            "the state in {} contradicts itself: {problem}",
            data_dir.display()
        ))
    })?;
    if recovered.cut_bytes > 0 {
        warn!(
            bytes = recovered.cut_bytes,
            "cut a torn record from the end of the log: it had not been acted on"
        );
    }
    let profile = match profiles.check(&profile, &state) {
        Ok(()) => profile,
        Err(failure) => {
            error!("{}; the profile in use stays", failure.message);
            state.profile.clone()
        }
    };
    profile_file::note(&profile);
    let mut changes = Vec::new();
    if fresh || state.profile != profile {
        changes.push(Command::UseProfile {
            profile: Box::new(profile),
        });
    }
    if state.placement != placement {
        changes.push(Command::UsePlacement { placement });
    }
    for command in changes {
        let at_ms = unix_ms();
        apply(&mut state, at_ms, &command);
        log.append(vec![Timed { at_ms, command }])?;
    }
    for server in state.servers.values().filter(|server| server.alive) {
        if let Some(how) = state.refused_as_foreign(server) {
            profile_file::note_foreign(server.server_id, &how, true);
        }
    }
    if log.wants_snapshot() {
        log.rewrite(&state)?;
    }
    let (servers, groups) = (state.servers.len(), state.groups.len());
    info!(commands = recovered.commands.len(), servers, groups, "recovered");
    Ok((log, state))
}

async fn listen(address: SocketAddr, flag: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|e| match e.kind() {
        ErrorKind::AddrInUse => Failure {
            code: FailureCode::PortInUse,
            message: format!(
                "{flag} {address}: the port is in use; stop the process that has it, or choose another"
            ),
        },
        _ => Failure::configuration(format!("{flag} {address}: {e}")),
    })
}

/// Says where it listens, on stdout and in `addresses.json`.
fn announce(data_dir: &Path, control: &TcpListener, http: &TcpListener) -> Result<(), Failure> {
    let address = |listener: &TcpListener| {
        listener
            .local_addr()
            .map_err(|e| Failure::configuration(format!("a listener has no address: {e}")))
    };
    let (control, http) = (address(control)?, address(http)?);
    let json = serde_json::json!({"control": control.to_string(), "http": http.to_string()});
    let (path, beside) = (
        data_dir.join("addresses.json"),
        data_dir.join("addresses.json.new"),
    );
    std::fs::write(&beside, format!("{json}\n"))
        .and_then(|()| std::fs::rename(&beside, &path))
        .map_err(|e| Failure::disk(format!("{}: {e}", path.display())))?;
    println!("listening role=control address={control}");
    println!("listening role=http address={http}");
    Ok(())
}

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be caught");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be caught");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
