//! The process: from its options to its end.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use quorate_certificates::FleetKeys;
use quorate_placement::Choice;
use quorate_types::control::FlowReport;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::info;

use super::listeners::{advertised, announce, listen};
use super::members::{Contact, Side, is_new_fleet};
use super::profile_file::ProfileSource;
use super::recovery::{Recovery, recover};
use super::secrets::{self, PrivateKeys};
use super::sharing::SharingView;
use super::task::{CoordinatorTask, Credentials, Handle, Reported, Reports, notes, unix_ms};
use super::{control, guarantees, http, key_file, profile_file, rates, sharing};
use crate::disk::{Disk, DurableLog};
use crate::exit::Failure;
use crate::options::Options;
use quorate_coordinator_core::command::{FleetSecrets, Headroom, PlacementPolicy, Relief, Replacements};
use quorate_coordinator_core::coordinator::{Coordinator, Start, secrets_in};
use quorate_coordinator_core::engine::{Now, Settings};
use quorate_coordinator_core::planner::{LeaseTimes, SuspicionTimes};

/// Runs until a signal asks it to stop.
pub async fn run(options: Options) -> Result<(), Failure> {
    if let Some(problem) = options.problem() {
        return Err(Failure::configuration(problem));
    }
    let profiles = ProfileSource::of(&options);
    let profile = profiles.read()?;
    let admin_token = secrets::read_admin_token(&options.admin_token_file)?;
    let client_keys = secrets::read_client_keys(&options.token_public_keys)?;
    create_data_dir(&options.data_dir)?;
    let joins = joins(&options).await?;
    let recovery = recover(&options.data_dir, &profile, joins)?;
    let fleet_keys = secrets::read_fleet_keys(&options, recovery.begins_fleet()).await?;
    let new_secrets = new_secrets(&recovery, &fleet_keys, &options.data_dir)?;
    let control = listen(options.listen_control, "--listen-control").await?;
    let http = listen(options.listen_http, "--listen-http").await?;
    let contact = Contact::new(
        advertised(options.advertise_control.as_ref(), &control),
        advertised(options.advertise_http.as_ref(), &http),
    );
    let mut side = Side::of(&options, &recovery, &fleet_keys, contact).await?;

    let started = Instant::now();
    let settings = settings(&options, client_keys.clone());
    let lifetime = Duration::from_secs(options.certificate_life_s);
    let (credentials, keys) = Credentials::new(fleet_keys, options.data_dir.clone(), lifetime);
    notes::profile(&profile);
    let start = Start {
        settings,
        profile,
        policy: policy(&options),
        overpromising: options.overpromising_profile.treatment(),
        secrets: new_secrets,
        address: side.address(),
        release: env!("CARGO_PKG_VERSION").into(),
        next_run: rand::random(),
    };
    let (coordinator, log) = member_of(recovery, start);
    let (disk, done) = Disk::start(log);
    let (sharing, sharing_reports) = sharing::channel();
    let (flows, flow_reports) = guarantees::channel();
    let (task, handle, inputs) = CoordinatorTask::new(
        coordinator,
        disk,
        side.for_task(),
        credentials,
        options.data_dir.clone(),
        started,
        Reports { sharing, flows },
    );
    let sharing = sharing::start(options.sharing_policy.into(), handle.clone(), sharing_reports);
    let computed = balanced(&handle, sharing, flow_reports);
    announce(&options.data_dir, &control, &http, side.address().as_deref())?;
    let (stopping, stop) = watch::channel(false);
    tokio::spawn(control::serve(control, keys.clone(), handle.inputs.clone()));
    tokio::spawn(key_file::follow(
        options.token_public_keys,
        client_keys,
        handle.inputs.clone(),
    ));
    tokio::spawn(profile_file::follow(profiles, handle.clone()));
    let connections = http::Connections::of(http, keys.clone(), options.allow_plaintext);
    tokio::spawn(http::serve(
        connections,
        http::Context::new(handle, computed, &admin_token, keys),
    ));
    side.serve();
    tokio::spawn(stop_when_asked(stopping));
    task.run(inputs, done, stop).await
}

/// Starts the tasks that divide guarantees and rates by what heads report.
fn balanced(
    handle: &Handle,
    sharing: watch::Receiver<SharingView>,
    flows: mpsc::Receiver<Reported<FlowReport>>,
) -> http::Computed {
    let (wants, balance) = rates::start(handle.clone());
    http::Computed {
        sharing,
        balance,
        division: guarantees::start(handle.clone(), flows, wants),
    }
}

async fn stop_when_asked(stopping: watch::Sender<bool>) {
    stop_signal().await;
    info!("stopping: asked to");
    let _ = stopping.send(true);
}

/// Whether an empty folder is to be taken into a fleet.
async fn joins(options: &Options) -> Result<bool, Failure> {
    let is_empty = !options.data_dir.join("coordinator.log").exists();
    if !(options.begin && is_empty) {
        return Ok(!options.join.is_empty());
    }
    let keys = secrets::read_fleet_keys(options, false).await?;
    Ok(!is_new_fleet(&options.join, &keys).await?)
}

fn settings(options: &Options, client_keys: Value) -> Settings {
    Settings {
        heartbeat_ms: options.heartbeat_ms,
        leases: LeaseTimes {
            lease_ms: options.lease_ms,
            reconnect_grace_ms: options.reconnect_grace_ms,
        },
        suspicions: SuspicionTimes {
            unreachable_ms: options.unreachable_ms,
            slow_ms: options.slow_ms,
            well_ms: options.well_ms,
            stale_ms: options.heartbeat_ms * 3,
            hung_ms: options.hung_ms,
        },
        client_keys,
    }
}

/// Keys for a fleet that has none, and a check of those that it has, before anything begins.
fn new_secrets(
    recovery: &Recovery,
    fleet_keys: &FleetKeys,
    data_dir: &Path,
) -> Result<Option<Box<FleetSecrets>>, Failure> {
    let Some(state) = &recovery.state else {
        return Ok(None);
    };
    let mut known = secrets_in(&recovery.disk.entries);
    known.extend(state.secrets.as_deref().cloned());
    // While the fleet's key is being replaced, the snapshot may have them as they were before.
    let mut refused = None;
    for secrets in &known {
        match PrivateKeys::open(fleet_keys, secrets) {
            Ok(_) => return Ok(None),
            Err(failure) => refused = Some(failure),
        }
    }
    if let Some(failure) = refused {
        return Err(failure);
    }
    let keys = PrivateKeys::of_files(data_dir)?.unwrap_or_else(PrivateKeys::generate);
    Ok(Some(Box::new(keys.seal(fleet_keys))))
}

fn member_of(recovery: Recovery, start: Start) -> (Coordinator, DurableLog) {
    let Recovery {
        log,
        member,
        disk,
        state,
        ..
    } = recovery;
    let now = Now {
        ms: 0,
        unix_ms: unix_ms(),
    };
    (
        Coordinator::new(member, disk, state, start, quorum_settings(), now),
        log,
    )
}

/// A leader that falls silent is replaced within about half a second. Bounds are for a fleet's state of a hundred megabytes.
fn quorum_settings() -> quorate_quorum::Settings {
    quorate_quorum::Settings {
        heartbeat_ms: 50,
        election_ms: 250,
        seed: rand::random(),
        append_bytes: 1 << 20,
        kept_bytes: 16 << 20,
    }
}

fn policy(options: &Options) -> PlacementPolicy {
    PlacementPolicy {
        choice: Choice::Shape,
        headroom: options.recovery_headroom,
        mismatched: options.foreign_profile.treatment(),
        replacements: Replacements::HeaviestFirst,
        relief: Relief::AtOnce,
        // The more servers a server shares groups with, the more of them have room when it fails. The more sets of
        // servers there are, too, whose failure together loses a group. So only fleets that keep room spread.
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

async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be caught");
    let mut interrupt = signal(SignalKind::interrupt()).expect("signals can be caught");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
