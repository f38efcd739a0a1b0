//! The real binary: start-up, HTTP, fake servers over TCP, failures, kill -9 and recovery.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::stage::{
    ADMIN_TOKEN, Coordinator, Server, arguments, eventually, live_until, register, run_to_end,
};
use quorate_tokens::Keys;
use quorate_types::control::{HeldGroup, RefuseCode, Register, ToCoordinator, ToServer};
use quorate_types::{Durability, GroupId, Machine, ServerId, Versions, versions};
use serde_json::{Value, json};
use uuid::Uuid;

fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

fn body(durability: &str, rate_per_s: u64) -> Value {
    json!({"project_id": Uuid::nil(), "sla": {
        "durability": durability, "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": rate_per_s}})
}

fn admit(coordinator: &Coordinator, servers: &mut [Server], id: GroupId, durability: &str) {
    let (status, view) = coordinator.call("PUT", &format!("/v1/groups/{id}"), Some(body(durability, 1_000)));
    assert_eq!((status, &view["status"]), (201, &json!("provisioning")), "{view}");
    live_until(servers, "the group to be active", |_| {
        (coordinator.group(id)["status"] == "active").then_some(())
    });
}

fn server_ids(view: &Value, key: &str) -> Vec<u64> {
    view[key]
        .as_array()
        .unwrap()
        .iter()
        .map(|replica| replica["server_id"].as_u64().unwrap())
        .collect()
}

#[test]
fn a_fleet_admits_fails_over_and_survives_the_coordinators_death() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=4)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    let id = group(1);
    admit(&coordinator, &mut servers, id, "in_memory");
    let chain = server_ids(&coordinator.group(id), "replicas");

    // The middle one dies: its connection breaks.
    let dead = servers
        .iter()
        .position(|s| u64::from(s.id().0) == chain[1])
        .unwrap();
    drop(servers.remove(dead));
    let started = Instant::now();
    let config = live_until(&mut servers, "the splice", |servers| {
        servers
            .iter()
            .flat_map(|s| s.configs.last())
            .find(|c| c.epoch == 2)
            .cloned()
    });
    assert!(
        started.elapsed() < Duration::from_millis(1_500),
        "{:?}",
        started.elapsed()
    );
    assert_eq!((config.replicas.len(), config.learners.len()), (2, 1));

    // The coordinator dies between the splice and the learner's arrival, and is started again.
    coordinator.kill();
    let coordinator = Coordinator::start(folder.path());
    let view = coordinator.group(id);
    assert_eq!((&view["epoch"], &view["status"]), (&json!(2), &json!("degraded")));
    let mut servers = Server::all_return_to(&coordinator, servers);
    live_until(&mut servers, "configurations again", |s| {
        s.iter().all(|s| s.configs.len() == 1).then_some(())
    });
    let (tail, learner) = (config.replicas[1].server_id, config.learners[0].server_id);
    let tail = servers.iter_mut().find(|s| s.id() == tail).unwrap();
    tail.send(&ToCoordinator::LearnerCaughtUp {
        group_id: id,
        epoch: 2,
        learner,
    });
    live_until(&mut servers, "the learner to join", |_| {
        (coordinator.group(id)["status"] == "active").then_some(())
    });
    let view = coordinator.group(id);
    assert_eq!(
        server_ids(&view, "replicas"),
        [chain[0], chain[2], u64::from(learner.0)]
    );
    assert_eq!(view["replicas"][0]["role"], "head");
    assert_eq!(coordinator.terminate(), 0);
}

#[test]
fn a_silent_server_loses_its_lease_and_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=3)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    admit(&coordinator, &mut servers, group(1), "persistent");
    let mut silent = servers.remove(0);
    live_until(&mut servers, "the lease to end", |_| {
        (coordinator.group(group(1))["status"] == "degraded").then_some(())
    });
    // Its connection was closed, so it registers again and joins as a learner with the data it has.
    while silent.receive(Duration::from_secs(5)).is_some() {}
    let held = vec![HeldGroup {
        group_id: group(1),
        epoch: 1,
        durability: Durability::Persistent,
        last_index: 0,
        committed_epoch: 0,
        committed_index: 0,
        damaged: false,
    }];
    servers.push(silent.return_to(&coordinator, None, held));
    let view = live_until(&mut servers, "the learner", |_| {
        let view = coordinator.group(group(1));
        (!server_ids(&view, "learners").is_empty()).then_some(view)
    });
    assert_eq!(server_ids(&view, "learners"), [u64::from(servers[2].id().0)]);
    assert!(servers[2].dropped.is_empty());
}

#[test]
fn bad_registrations_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let refusal =
        |register: Register| match Server::connect(&coordinator, register).receive(Duration::from_secs(5)) {
            Some(ToServer::Refuse { code, message }) => {
                assert!(!message.is_empty());
                code
            }
            other => panic!("not refused: {other:?}"),
        };
    let token = coordinator.join_token();
    let with = |token: &str, name: &str| Register {
        join_token: Some(token.into()),
        ..register(name)
    };
    assert_eq!(refusal(with("qjt_guess", "s1")), RefuseCode::JoinTokenInvalid);
    assert_eq!(refusal(register("s1")), RefuseCode::RegisterInvalid);
    assert_eq!(
        refusal(with(&token, "no spaces please")),
        RefuseCode::RegisterInvalid
    );
    let (status, made) = coordinator.call(
        "POST",
        "/v1/join-tokens",
        Some(json!({"ttl_s": 60, "name": "s1"})),
    );
    let id = made["id"].as_str().expect("an id").to_string();
    assert_eq!(status, 201);
    assert!(
        !made["token"].as_str().expect("a token").contains(&id),
        "an id opens nothing"
    );
    assert_eq!(
        coordinator
            .call("DELETE", &format!("/v1/join-tokens/{id}"), None)
            .0,
        204
    );
    let revoked = made["token"]
        .as_str()
        .map(|token| token.split('.').next().expect("a secret"));
    assert_eq!(
        refusal(with(revoked.expect("a token"), "s1")),
        RefuseCode::JoinTokenInvalid
    );
    let (_, listed) = coordinator.call("GET", "/v1/join-tokens", None);
    let listed: Vec<_> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter(|view| view["id"] == id.as_str())
        .collect();
    assert_eq!((listed.len(), &listed[0]["state"]), (1, &json!("revoked")));
    assert_eq!(
        coordinator
            .call("DELETE", "/v1/join-tokens/0000000000000000", None)
            .0,
        404
    );
    let first = Server::connect(&coordinator, with(&token, "s1")).welcomed();
    assert_eq!(refusal(with(&token, "s2")), RefuseCode::JoinTokenUsed);
    assert_eq!(
        refusal(with(&coordinator.join_token(), "s1")),
        RefuseCode::NameTaken
    );
    assert_eq!(
        refusal(Register {
            credential: Some("qsc_guess".into()),
            ..register("s1")
        }),
        RefuseCode::CredentialInvalid
    );
    // Garbage, and a frame that claims to be huge: answered or disconnected, without harm to others.
    let mut rude = Server::connect(&coordinator, with(&coordinator.join_token(), "s3"));
    rude.send_bytes(b"{\"type\":\"nonsense\"}");
    while rude.receive(Duration::from_secs(5)).is_some() {}
    let mut huge = Server::connect(&coordinator, with(&coordinator.join_token(), "s4"));
    huge.send_bytes(&vec![b' '; 5 << 20]);
    while huge.receive(Duration::from_secs(5)).is_some() {}
    assert_eq!(coordinator.call("GET", "/v1/health", None).0, 200);
    // Secrets are not kept: neither the token nor the credential is in the data folder.
    let log = std::fs::read(coordinator.data_dir.join("coordinator.log")).unwrap();
    let log = String::from_utf8_lossy(&log);
    assert!(!log.contains(&token) && !log.contains(&first.welcome.unwrap().credential.unwrap()));
}

#[test]
fn unauthenticated_connections_reach_neither_the_log_nor_after_a_while_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut known = Server::join(&coordinator, "s1");
    let log = coordinator.data_dir.join("coordinator.log");
    let mut answered = 0;
    for n in 0..40 {
        let guess = Register {
            credential: Some(format!("qsc_guess{n}")),
            ..register(&"x".repeat(1 << 20))
        };
        let answer = Server::connect(&coordinator, guess).receive(Duration::from_secs(5));
        answered += u32::from(matches!(answer, Some(ToServer::Refuse { .. })));
    }
    assert!((20..30).contains(&answered), "{answered} of 40 were answered");
    // The known server's silence may be logged meanwhile, and nothing else.
    let kept = std::fs::read(&log).unwrap();
    assert!(kept.len() < 16_384, "{} bytes are kept", kept.len());
    assert!(!String::from_utf8_lossy(&kept).contains("xxxxxxxx"));
    // Servers with a credential or a token are let in all the same.
    known = known.return_to(&coordinator, None, vec![]);
    Server::join(&coordinator, "s2");
    drop(known);
}

#[test]
fn client_keys_are_read_again_when_their_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut server = Server::join(&coordinator, "s1");
    let key = |kid: &str| json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let both = json!({"keys": [key("k1"), key("k2")]});
    let file = folder.path().join("keys.json");
    // Half a file, as an editor may leave it for a moment, changes nothing.
    std::fs::write(&file, &both.to_string()[..30]).unwrap();
    let looked = Instant::now() + Duration::from_millis(1_500);
    while Instant::now() < looked {
        server.live();
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::write(&file, both.to_string()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let received = loop {
        let beat =
            json!({"type": "heartbeat", "seq": 1, "groups": [], "unreachable": [], "storage_fault": null});
        server.send_bytes(beat.to_string().as_bytes());
        match server.receive(Duration::from_millis(100)) {
            Some(ToServer::ClientKeys { keys }) => break keys,
            _ => assert!(Instant::now() < deadline, "no new keys"),
        }
    };
    assert_eq!(received, both);
    assert_eq!(
        Server::join(&coordinator, "s2").welcome.unwrap().client_keys,
        both
    );
}

#[test]
fn a_drain_is_asked_for_shown_and_called_off() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=3)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    admit(&coordinator, &mut servers, group(1), "persistent");
    let (status, view) = coordinator.call("POST", "/v1/servers/1/drain", None);
    assert_eq!(
        (status, &view["draining"], &view["replicas"]),
        (200, &json!(true), &json!(1)),
        "{view}"
    );
    assert_eq!(view["drain"]["scarce_resource"], "servers");
    assert_eq!(coordinator.call("POST", "/v1/servers/1/drain", None).1, view);
    let (status, view) = coordinator.call("DELETE", "/v1/servers/1/drain", None);
    assert_eq!((status, &view["drain"]), (200, &Value::Null));
    assert_eq!(coordinator.call("POST", "/v1/servers/9/drain", None).0, 404);
    assert_eq!(coordinator.call("POST", "/v1/servers/one/drain", None).0, 400);
    let (status, problem) = coordinator.call("DELETE", "/v1/servers/1", None);
    assert_eq!((status, &problem["code"]), (409, &json!("server_alive")));
    let reset =
        |id: GroupId, body: Value| coordinator.call("POST", &format!("/v1/groups/{id}/reset"), Some(body));
    assert_eq!(reset(group(1), json!({"epoch": 1})).1["code"], "group_not_lost");
    assert_eq!(reset(group(1), json!({})).0, 422);
    assert_eq!(reset(group(2), json!({"epoch": 1})).0, 404);
}

#[test]
fn a_server_that_is_given_up_is_known_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=2)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    drop(servers.pop());
    live_until(&mut servers, "the second server to have failed", |_| {
        let listed = coordinator.call("GET", "/v1/servers", None).1;
        (listed[1]["alive"] == json!(false)).then_some(())
    });
    assert_eq!(coordinator.call("DELETE", "/v1/servers/2", None).0, 204);
    assert_eq!(coordinator.call("DELETE", "/v1/servers/2", None).0, 204);
    assert_eq!(coordinator.call("GET", "/v1/servers/2", None).0, 404);
    assert_eq!(coordinator.call("POST", "/v1/servers/2/drain", None).0, 404);
    let listed = coordinator.call("GET", "/v1/servers", None).1;
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn a_peer_token_verifies_with_the_keys_of_the_welcome() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let welcome = Server::join(&coordinator, "s1").welcome.unwrap();
    assert_eq!(welcome.client_keys["keys"][0]["kid"], "k1");
    let keys = Keys::from_jwks(&welcome.peer_keys).unwrap();
    assert_eq!(keys.check_peer(&welcome.peer_token), Ok(ServerId(1)));
    // The key survives a restart, so servers still recognise each other.
    coordinator.kill();
    let coordinator = Coordinator::start(folder.path());
    coordinator.end_roll_call();
    assert_eq!(
        Server::join(&coordinator, "s2").welcome.unwrap().peer_keys,
        welcome.peer_keys
    );
}

#[test]
fn http_answers_and_refuses_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=3)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    let path = |n| format!("/v1/groups/{}", group(n));

    assert_eq!(
        coordinator.call_raw("GET", "/v1/health", "", "").1["servers_alive"],
        3
    );
    let (status, problem) = coordinator.call_raw("GET", "/v1/groups", "", "Bearer wrong");
    assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")));
    assert_eq!(coordinator.call_raw("GET", "/v1/groups", "", "").0, 401);

    let sla = body("persistent", 1_000)["sla"].clone();
    let (status, quote) = coordinator.call("POST", "/v1/quotes", Some(json!({"sla": sla})));
    assert_eq!(
        (
            status,
            &quote["admissible"],
            quote["demand"].as_array().unwrap().len()
        ),
        (200, &json!(true), 3)
    );
    admit(&coordinator, &mut servers, group(1), "persistent");
    assert_eq!(
        coordinator
            .call("PUT", &path(1), Some(body("persistent", 1_000)))
            .0,
        200
    );
    let (status, problem) = coordinator.call("PUT", &path(1), Some(body("persistent", 2_000)));
    assert_eq!((status, &problem["code"]), (409, &json!("group_exists")));
    let (status, problem) = coordinator.call("PUT", &path(2), Some(body("in_memory", 50_000_000)));
    assert_eq!((status, &problem["code"]), (409, &json!("admission_refused")));
    assert_eq!(problem["refusal"]["scarce_resource"], "shard");
    assert!(
        problem["refusal"]["largest_sla_that_fits"]["rate_per_s"]
            .as_u64()
            .unwrap()
            > 100_000
    );

    for (sent, status, field) in [
        ("{", 400, ""),
        ("", 400, ""),
        ("[]", 422, ""),
        (r#"{"project_id":"x","sla":{}}"#, 422, "project_id"),
        (r#"{"sla":{"durability":"eventual"}}"#, 422, "sla.durability"),
        (r#"{"sla":{},"extra":1}"#, 422, ""),
    ] {
        let (got, problem) = coordinator.call_raw("PUT", &path(3), sent, &format!("Bearer {}", ADMIN_TOKEN));
        assert_eq!(got, status, "{sent}: {problem}");
        if !field.is_empty() {
            assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        }
    }
    let mut bad = body("in_memory", 1);
    bad["sla"]["replication_degree"] = json!(9);
    let (status, problem) = coordinator.call("PUT", &path(3), Some(bad));
    assert_eq!(
        (status, &problem["errors"][0]["field"]),
        (422, &json!("sla.replication_degree"))
    );
    let huge = format!("{{\"sla\":\"{}\"}}", "x".repeat(100_000));
    let authorization = format!("Bearer {}", ADMIN_TOKEN);
    let (status, problem) = coordinator.call_raw("PUT", &path(3), &huge, &authorization);
    assert_eq!((status, &problem["code"]), (413, &json!("body_too_large")));
    for (method, at, status) in [
        ("GET", path(9).as_str(), 404),
        ("GET", "/v1/groups/not-a-uuid", 400),
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/capacity", 405),
        ("GET", "/v1/events?after=x", 400),
        ("DELETE", path(9).as_str(), 204),
    ] {
        assert_eq!(coordinator.call(method, at, None).0, status, "{method} {at}");
    }

    let (_, capacity) = coordinator.call("GET", "/v1/capacity", None);
    assert_eq!(
        (&capacity["servers_alive"], &capacity["nominal"]["cpu"]),
        (&json!(3), &json!(6.0))
    );
    assert!(capacity["allocated"]["storage_io_per_s"].as_f64().unwrap() >= 6_000.0);
    assert_eq!(coordinator.call("GET", "/v1/servers", None).1[0]["replicas"], 1);
    assert_eq!(coordinator.call("DELETE", &path(1), None).0, 204);
    live_until(&mut servers, "the group to be gone", |_| {
        (coordinator.call("GET", &path(1), None).0 == 404).then_some(())
    });
}

#[test]
fn events_are_dense_wait_for_the_next_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let _first = Server::join(&coordinator, "s1");
    let (_, seen) = coordinator.call("GET", "/v1/events?after=0", None);
    assert_eq!(
        (&seen["events"][0]["kind"], &seen["events"][0]["seq"]),
        (&json!("server_registered"), &json!(1))
    );
    let next = seen["next"].as_u64().unwrap();
    let started = Instant::now();
    let waited = std::thread::scope(|scope| {
        let wait = scope.spawn(|| {
            coordinator
                .call("GET", &format!("/v1/events?after={next}&wait_ms=10000"), None)
                .1
        });
        std::thread::sleep(Duration::from_millis(200));
        let _second = Server::join(&coordinator, "s2");
        wait.join().unwrap()
    });
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(waited["events"][0]["seq"], next + 1);
    let (_, none) = coordinator.call("GET", "/v1/events?after=999&wait_ms=50", None);
    assert_eq!(none["events"], json!([]));
    coordinator.kill();
    let coordinator = Coordinator::start(folder.path());
    let (_, again) = coordinator.call("GET", "/v1/events?after=0", None);
    assert_eq!(again["events"][0], seen["events"][0]);
}

#[test]
fn starts_that_cannot_work_say_why_with_the_documented_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let with = |extra: &[&str]| {
        let mut all = arguments(folder.path());
        for pair in extra.chunks(2) {
            match all.iter().position(|argument| argument == pair[0]) {
                Some(at) => all[at + 1] = pair[1].into(),
                None => all.extend(pair.iter().map(|s| s.to_string())),
            }
        }
        run_to_end(&all)
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken
        .local_addr()
        .map(|address| (address.to_string(), taken))
        .unwrap();
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, r#"{"format":1}"#).unwrap();
    for (extra, code, words) in [
        (&["--listen-http", taken.0.as_str()][..], 4, "port is in use"),
        (&["--certificate-life-s", "1"], 2, "--certificate-life-s"),
        (&["--lease-ms", "100"], 2, "three times"),
        (&["--profile", broken.to_str().unwrap()], 2, "version"),
        (&["--token-public-keys", "/nowhere"], 2, "--token-public-keys"),
        (&["--data-dir", "/proc/nowhere"], 5, "--data-dir"),
        (&["--no-such-flag", "1"], 2, "no-such-flag"),
    ] {
        let (got, error) = with(extra);
        assert_eq!(got, code, "{extra:?}: {error}");
        assert!(error.contains(words), "{extra:?}: {error}");
    }
    let token = folder.path().join("open-token");
    std::fs::write(&token, ADMIN_TOKEN).unwrap();
    let (code, error) = with(&["--admin-token-file", token.to_str().unwrap()]);
    assert!(code == 2 && error.contains("chmod 600"), "{code} {error}");

    // Damage in the middle of the log.
    let coordinator = Coordinator::start(folder.path());
    let (code, error) = with(&[]);
    assert!(
        code == 5 && error.contains("in use by another coordinator"),
        "{code} {error}"
    );
    Server::join(&coordinator, "s1");
    let log = coordinator.data_dir.join("coordinator.log");
    coordinator.kill();
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let (code, error) = with(&[]);
    assert!(
        code == 5 && error.contains("damaged at byte 16"),
        "{code} {error}"
    );
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
}

/// The built-in profile as a file, with changes.
fn profile_file(folder: &std::path::Path, version: &str, changes: Value) -> String {
    let mut profile = serde_json::to_value(quorate_placement::Profile::default_profile()).unwrap();
    profile["version"] = json!(version);
    for (field, value) in changes.as_object().unwrap() {
        profile[field] = value.clone();
    }
    let path = folder.join("profile.json");
    let new = folder.join("profile.new");
    std::fs::write(&new, profile.to_string()).unwrap();
    std::fs::rename(&new, &path).unwrap();
    path.display().to_string()
}

#[test]
fn a_new_profile_is_used_without_a_restart_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = profile_file(folder.path(), "first", json!({}));
    let coordinator = Coordinator::start_with(folder.path(), &["--profile", &path]);
    let version = || coordinator.call("GET", "/v1/capacity", None).1["profile_version"].clone();
    assert_eq!(version(), "first");
    profile_file(folder.path(), "second", json!({}));
    let until = |wanted: &str| {
        let began = Instant::now();
        while version() != wanted {
            assert!(began.elapsed() < Duration::from_secs(20), "still {}", version());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until("second");
    profile_file(folder.path(), "broken", json!({"safety_factor": 2}));
    // The later profile is in use, so the broken one was read.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(version(), "second");
    profile_file(folder.path(), "third", json!({}));
    until("third");
    // The log has it: a restart without the file's change uses it, too.
    coordinator.kill();
    let again = Coordinator::start_with(folder.path(), &["--profile", &path]);
    assert_eq!(
        again.call("GET", "/v1/capacity", None).1["profile_version"],
        "third"
    );
}

#[test]
fn a_profile_that_does_not_match_the_servers_is_flagged_or_refused_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let measured = |cores: u32| {
        json!({"format": 2, "provisional": false, "servers_version": "0.1.0",
            "machine": {"cpu": "A server's CPU", "cores": cores}})
    };
    let path = profile_file(folder.path(), "own", measured(64));
    let refuse = ["--profile", &path, "--foreign-profile", "refuse"];
    // The coordinator's own machine does not matter: the profile is for servers.
    let coordinator = Coordinator::start_with(folder.path(), &refuse);
    let server = Register {
        join_token: Some(coordinator.join_token()),
        machine: Some(Machine {
            cpu: "A server's CPU".into(),
            cores: 64,
        }),
        ..register("s1")
    };
    let _own = Server::connect(&coordinator, server).welcomed();
    let version = || coordinator.call("GET", "/v1/capacity", None).1["profile_version"].clone();
    profile_file(folder.path(), "foreign", measured(32));
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(version(), "own", "a profile of other servers changes nothing");
    coordinator.kill();

    // It is refused at a start, too, which is no reason to be without a coordinator.
    let coordinator = Coordinator::start_with(folder.path(), &refuse);
    let capacity = |coordinator: &Coordinator| coordinator.call("GET", "/v1/capacity", None).1;
    assert_eq!(capacity(&coordinator)["profile_version"], "own");
    let other = Register {
        join_token: Some(coordinator.join_token()),
        machine: Some(Machine {
            cpu: "A server's CPU".into(),
            cores: 32,
        }),
        ..register("s2")
    };
    let _other = Server::connect(&coordinator, other).welcomed();
    let servers = coordinator.call("GET", "/v1/servers", None).1;
    assert_eq!(servers[0]["foreign"], Value::Null);
    assert_eq!(servers[0]["machine"], "64 × A server's CPU");
    assert_eq!(servers[1]["takes_replicas"], false);
    let how = servers[1]["foreign"].as_str().expect("it says why");
    assert!(how.contains("64 × A server's CPU, and this is 32"), "{how}");
    coordinator.kill();

    let mut refusing = arguments(folder.path());
    refusing.extend(refuse.map(String::from));
    // The first format does not name the machine it was measured on.
    profile_file(
        folder.path(),
        "unknown",
        json!({"format": 1, "provisional": false}),
    );
    let (code, said) = run_to_end(&refusing);
    assert!(
        code == 2 && said.contains("does not name the machine"),
        "{code} {said}"
    );

    profile_file(folder.path(), "foreign", measured(32));
    let coordinator = Coordinator::start_with(folder.path(), &["--profile", &path]);
    assert_eq!(
        coordinator.call("GET", "/v1/health", None).1["roll_call"]["awaited"],
        1
    );
    coordinator.end_roll_call();
    eventually("the profile", || {
        let capacity = coordinator.call("GET", "/v1/capacity", None).1;
        (capacity["profile_version"] == "foreign").then_some(())
    });
}

/// The reproduction of two heads: epochs are issued, the log is restored from before them, and a server says so.
#[test]
fn a_coordinator_on_an_older_copy_of_its_log_ends_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=3)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    let files = ["coordinator.log", "coordinator.mark"].map(|file| coordinator.data_dir.join(file));
    let copy = files.each_ref().map(|file| std::fs::read(file).unwrap());
    admit(&coordinator, &mut servers, group(1), "persistent");
    let place = servers[0].place.expect("messages carry it");
    coordinator.kill();
    for (file, content) in files.iter().zip(&copy) {
        std::fs::write(file, content).unwrap();
    }

    let mut restored = Coordinator::start(folder.path());
    servers[0].register.place = Some(place);
    let mut told = Server::connect(&restored, servers[0].credentials());
    assert_eq!(told.receive(Duration::from_secs(5)), None, "nothing is sent");
    assert_eq!(restored.wait(), 6);

    // With the mark of the newest log in place, the start alone finds it out.
    let (newest, mark) = (&copy[0], &files[1]);
    let longer = Coordinator::start(folder.path());
    longer.kill();
    std::fs::write(&files[0], newest).unwrap();
    assert!(std::fs::metadata(mark).unwrap().len() > 0);
    let (code, said) = run_to_end(&arguments(folder.path()));
    assert!(code == 6 && said.contains("that were synced"), "{code} {said}");
}

/// An upgrade replays nothing, and its servers are believed to know no more.
#[test]
fn a_stop_in_order_leaves_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let _server = Server::join(&coordinator, "s1");
    let log = coordinator.data_dir.join("coordinator.log");
    assert_eq!(coordinator.terminate(), 0);
    let bytes = std::fs::read(&log).unwrap();
    let scanned =
        quorate_coordinator_core::log::scan(&bytes).unwrap_or_else(|(at, damage)| panic!("{at}: {damage}"));
    let quorate_coordinator_core::log::Contents::Member(disk) = scanned.contents else {
        panic!("{:?}", scanned.contents);
    };
    assert!(disk.state.is_some() && disk.entries.is_empty());
}

/// A release before the quorum decided alone.
#[test]
fn a_log_of_before_the_quorum_becomes_its_first_member() {
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/coordinator-core/tests/golden/0.1.0.log");
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    std::fs::copy(golden, data_dir.join("coordinator.log")).unwrap();
    for _ in 0..2 {
        let coordinator = Coordinator::start(folder.path());
        let groups = coordinator.call("GET", "/v1/groups", None).1;
        assert!(
            groups.as_array().is_some_and(|groups| groups.len() > 2),
            "{groups}"
        );
        assert_eq!(coordinator.terminate(), 0);
    }
    let log = std::fs::read(data_dir.join("coordinator.log")).unwrap();
    let scanned = quorate_coordinator_core::log::scan(&log).unwrap();
    assert!(matches!(
        scanned.contents,
        quorate_coordinator_core::log::Contents::Member(_)
    ));
}

#[test]
fn a_coordinator_alone_shows_its_part_in_the_quorum() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let view = eventually("it leads", || {
        let view = coordinator.call("GET", "/v1/quorum", None).1;
        (view["role"] == "leader").then_some(view)
    });
    assert_eq!(view["leader"], view["member"]);
    assert_eq!(view["members"][0]["member"], view["member"]);
    assert_eq!(view["members"][0]["votes"], true);
    let before = view["agreed_position"].as_u64().unwrap();
    coordinator.join_token();
    eventually("the token is counted", || {
        let view = coordinator.call("GET", "/v1/quorum", None).1;
        (view["durable_position"] == before + 1 && view["agreed_position"] == before + 1).then_some(())
    });
    let term = view["term"].as_u64().unwrap();
    coordinator.kill();
    let again = Coordinator::start(folder.path());
    eventually("its next term", || {
        let view = again.call("GET", "/v1/quorum", None).1;
        (view["term"].as_u64() == Some(term + 1) && view["role"] == "leader").then_some(())
    });
}

/// A new fleet begins with the version of its release: the release before takes no part in it.
#[test]
fn a_new_fleet_has_the_newest_version_and_says_so_to_servers_and_operators() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let newest = versions::FLEET.newest;
    let (status, view) = coordinator.call("GET", "/v1/fleet-version", None);
    assert_eq!(
        (status, view),
        (200, json!({"version": newest, "newest": newest, "waits_for": []}))
    );
    let server = Server::join(&coordinator, "s1");
    assert_eq!(server.welcome.as_ref().unwrap().fleet_version, newest);
    let (status, view) = coordinator.call("POST", "/v1/fleet-version", None);
    assert_eq!(
        (status, &view["version"]),
        (200, &json!(newest)),
        "a repetition is harmless"
    );
    let older = Register {
        join_token: Some(coordinator.join_token()),
        versions: Versions::default(),
        fleet_versions: Versions::default(),
        links: None,
        ..register("s2")
    };
    match Server::connect(&coordinator, older).receive(Duration::from_secs(10)) {
        Some(ToServer::Refuse { message, .. }) => assert!(message.contains("newer release"), "{message}"),
        other => panic!("let in: {other:?}"),
    }
}
