//! The command: the paper's worked example through JSON, bad input refused by field, the schema fresh.

use std::io::{ErrorKind, Write};
use std::process::{Command, Output, Stdio};

use quorate_placement::{Amounts, Choice, Fleet, Profile, quote};
use quorate_types::{Durability, Room, ServerId, Sla};
use serde_json::{Value, json};

fn run(arguments: &[&str], instance: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quorate-planner"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments ends before it has read its input.
    let written = child.stdin.take().unwrap().write_all(instance.as_bytes());
    assert!(written.is_ok() || written.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe));
    child.wait_with_output().unwrap()
}

fn answer(arguments: &[&str], instance: &Value) -> Value {
    let output = run(arguments, &instance.to_string());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Filo's Table 1.
fn table_1() -> Value {
    json!({
        "servers": [
            {"id": "R1", "capacity": [2, 2, 250]}, {"id": "R2", "capacity": [2, 2, 400]},
            {"id": "R3", "capacity": [8, 4, 100]}, {"id": "R4", "capacity": [4, 2, 250]},
        ],
        "applicants": [
            {"id": "a1", "sla_per_s": 100, "replicas": [[1, 1, 100], [3, 1, 100]]},
            {"id": "a2", "sla_per_s": 100, "replicas": [[3, 4, 100], [1, 1, 150]]},
        ],
    })
}

#[test]
fn the_worked_example_off_line_and_on_line() {
    let offline = answer(&["place", "--offline", "--algorithm", "filo", "-"], &table_1());
    assert_eq!(
        offline["placed"],
        json!([{"id": "a2", "servers": ["R3", "R1"]}, {"id": "a1", "servers": ["R2", "R4"]}])
    );
    assert_eq!(
        offline["servers"][2],
        json!({"id": "R3", "left": [5.0, 0.0, 0.0]})
    );
    // One at a time a1 takes R1 and R3, and then nobody has 4 Gbps for a2; 2 Gbps would fit.
    let online = answer(&["place", "--online", "--algorithm", "filo", "-"], &table_1());
    assert_eq!(online["placed"], json!([{"id": "a1", "servers": ["R1", "R3"]}]));
    let refused = json!([{"id": "a2", "replica": 0, "scarce_resource": "network", "largest_sla_per_s": 50}]);
    assert_eq!(online["refused"], refused);
}

#[test]
fn failed_replicas_go_first_and_to_auxiliary_servers_too() {
    let mut instance = table_1();
    instance["servers"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": "X", "capacity": [9, 9, 900], "auxiliary": true}));
    instance["failed"] = json!([
        {"id": "t", "demand": [8, 4, 100], "members": ["R1"]},
        {"id": "u", "demand": [8, 4, 100], "members": ["R1"]},
    ]);
    let offline = answer(&["place", "--offline", "-"], &instance);
    assert_eq!(
        offline["replaced"],
        json!([{"id": "t", "server": "R3"}, {"id": "u", "server": "X"}])
    );
    assert_eq!(
        offline["placed"].as_array().unwrap().len(),
        1,
        "a2 has no server left"
    );
}

fn hosted() -> Value {
    json!({
        "servers": [{"id": "R1", "capacity": [2, 2, 250]}, {"id": "R3", "capacity": [8, 4, 200]}],
        "tenants": [
            {"id": "a1", "placement": ["R1", "R3"], "request": [[0.01, 0.01, 1], [0.03, 0.01, 1]],
             "reserved_per_s": 100, "extra": "all"},
            {"id": "a2", "placement": ["R3"], "request": [[0.01, 0.01, 1]], "reserved_per_s": 40, "used_per_s": 0},
        ],
    })
}

/// Every algorithm finds the one answer of an instance with one tenant who wants more.
#[test]
fn policies_and_algorithms() {
    for algorithm in ["cdrf", "cdrf-exact", "head", "all", "level", "fleet"] {
        let utility = |policy: &str| {
            let arguments = ["conserve", "--algorithm", algorithm, "--policy", policy, "-"];
            let answer = answer(&arguments, &hosted());
            (
                answer["tenants"][0]["utility_per_s"].as_u64(),
                answer["tenants_without_room_to_return"].as_u64(),
            )
        };
        // R3's storage: 200 less 140 reserved leaves 60; a2 does not use its 40, and could not come back to them.
        assert_eq!(utility("unallocated"), (Some(60), Some(0)), "{algorithm}");
        assert_eq!(utility("idle"), (Some(100), Some(1)), "{algorithm}");
    }
}

/// The default, with what a batch costs itself: format 3.
const WITH_BATCHES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/with-batches.json");

fn with_batches() -> Profile {
    let default = include_str!("../../crates/placement/profiles/default.json");
    let mut json: Value = serde_json::from_str(default).unwrap();
    json["format"] = 3.into();
    for durability in ["in_memory", "persistent"] {
        json["cpu"][durability]["batch_ns"] = json!({"head": 40_000, "follower": 36_000, "tail": 20_000});
    }
    std::fs::write(WITH_BATCHES, json.to_string()).unwrap();
    Profile::parse(&json.to_string()).unwrap()
}

/// The reservation for appends that may come alone is many times their cost in full batches.
#[test]
fn a_reservation_is_the_same_of_applicants_and_tenants() {
    let profile = with_batches();
    let sla = |rate_per_s: u64| {
        json!({"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64,
            "rate_per_s": rate_per_s})
    };
    let capacity = [0.5, 1e8, 1e5];
    let servers: Vec<Value> = ["a", "b", "c"]
        .map(|id| json!({"id": id, "capacity": capacity}))
        .to_vec();
    let place = |instance: &Value| answer(&["place", "--online", "--profile", WITH_BATCHES, "-"], instance);
    let applies = |rate| json!({"servers": servers, "applicants": [{"id": "g", "sla": sla(rate)}]});
    let placed = place(&applies(5_000));
    let chain = &placed["placed"][0]["servers"];
    let hosts = |used| {
        json!({"servers": servers, "tenants": [
            {"id": "g", "placement": chain, "sla": sla(5_000), "used_per_s": used},
            {"id": "more", "placement": chain, "sla": sla(1), "extra": {"per_s": 1}}]})
    };
    let alone = json!({"servers": servers, "tenants": [{"id": "g", "placement": chain, "sla": sla(5_000)}]});
    assert_eq!(
        placed["servers"],
        place(&alone)["servers"],
        "the same amounts are left"
    );
    let conserve = |policy: &str, instance: &Value| {
        answer(
            &["conserve", "--policy", policy, "--profile", WITH_BATCHES, "-"],
            instance,
        )
    };
    let left_cpu: f64 = (0..3)
        .map(|s| placed["servers"][s]["left"][0].as_f64().unwrap())
        .sum();
    let free_cpu = |answer: &Value| answer["free_before"][0].as_f64().unwrap();
    let unallocated = free_cpu(&conserve("unallocated", &alone));
    assert!(
        (unallocated - left_cpu).abs() < 1e-6,
        "{unallocated} of {left_cpu}"
    );
    // Idle, and half used: a half of what is reserved, of the single-entry appends too.
    let reserved = 1.5 - left_cpu;
    assert!(reserved > 0.07, "{reserved}: a thousand alone are 72 ms");
    let one = conserve("unallocated", &hosts(5_000));
    for (used, kept) in [(5_000, 1.0), (2_500, 0.5), (0, 0.0)] {
        let idle = free_cpu(&conserve("idle", &hosts(used)));
        let expected = free_cpu(&one) + reserved * (1.0 - kept);
        assert!((idle - expected).abs() < 1e-6, "{used}: {idle} of {expected}");
    }
    // Too much for these servers: what would fit is what the coordinator says.
    let refused = place(&applies(60_000));
    let largest = refused["refused"][0]["largest_sla_per_s"].as_u64().unwrap();
    let mut fleet = Fleet::default().choosing(Choice::Shape);
    for id in 1..=3 {
        let rates = Amounts::of_rates([500_000_000, 100_000_000, 100_000_000]).to_resources();
        let all = Amounts::of_capacity(rates, Room::default(), 1.0);
        fleet.set_server(ServerId(id), all, None, false, true);
    }
    let asked: Sla = Sla {
        read_rate_per_s: 0,
        durability: Durability::Persistent,
        replication_degree: 3,
        min_replicas: None,
        request_size_bytes: 64,
        rate_per_s: 60_000,
        region: "local".into(),
        retention_bytes: 1 << 20,
        retention_age_s: None,
        latency: Default::default(),
    };
    let refusal = quote(&mut fleet, &profile, &asked).refusal.unwrap();
    assert_eq!(refusal.largest_sla_that_fits.unwrap().rate_per_s, largest);
    assert_eq!(place(&applies(largest))["refused"], json!([]));
    assert_eq!(place(&applies(largest + 1))["placed"], json!([]));
}

#[test]
fn bad_input_is_refused_by_field() {
    let server = r#"{"id": "s", "capacity": [1, 1, 1]}"#;
    let tenant = |fields: &str| format!(r#"{{"servers": [{server}], "tenants": [{{"id": "t", {fields}}}]}}"#);
    let applicant =
        |fields: &str| format!(r#"{{"servers": [{server}], "applicants": [{{"id": "a", {fields}}}]}}"#);
    let sla = |size: u64, rate: u64, degree: u64| {
        format!(
            r#""sla": {{"durability": "persistent", "replication_degree": {degree}, "request_size_bytes": {size}, "rate_per_s": {rate}}}"#
        )
    };
    for (field, instance) in [
        ("(end)", "{\"servers\": []} x".to_string()),
        ("servers", r#"{"servers": []}"#.to_string()),
        ("missing field `servers`", "{}".to_string()),
        (
            "unknown field `sneaky`",
            r#"{"sneaky": 1, "servers": []}"#.to_string(),
        ),
        (
            "servers[0].capacity[1] (network)",
            r#"{"servers": [{"id": "s", "capacity": [1, -1, 1]}]}"#.to_string(),
        ),
        (
            "servers[0].capacity[1]",
            r#"{"servers": [{"id": "s", "capacity": [1, 1e999, 1]}]}"#.to_string(),
        ),
        (
            "servers[0].capacity[1]",
            r#"{"servers": [{"id": "s", "capacity": [1, null, 1]}]}"#.to_string(),
        ),
        (
            "servers[0].capacity",
            r#"{"servers": [{"id": "s", "capacity": [1, 1]}]}"#.to_string(),
        ),
        (
            "servers[0].capacity[0] (cpu)",
            r#"{"servers": [{"id": "s", "capacity": [1e300, 1, 1]}]}"#.to_string(),
        ),
        ("servers[1].id", format!(r#"{{"servers": [{server}, {server}]}}"#)),
        (
            "recovery_headroom",
            format!(r#"{{"servers": [{server}], "recovery_headroom": 1.5}}"#),
        ),
        ("applicants[0]", applicant(r#""replicas": [[1, 1, 1]]"#)),
        (
            "applicants[0].replicas[0]",
            applicant(r#""sla_per_s": 1, "replicas": [[1, 1, 1, 1]]"#),
        ),
        (
            "applicants[0].replicas",
            applicant(r#""sla_per_s": 1, "replicas": []"#),
        ),
        (
            "applicants[0].sla_per_s",
            applicant(r#""sla_per_s": 0, "replicas": [[1, 1, 1]]"#),
        ),
        ("applicants[0].sla.replication_degree", applicant(&sla(64, 1, 8))),
        ("applicants[0].sla.request_size_bytes", applicant(&sla(0, 1, 3))),
        (
            "applicants[0].sla.rate_per_s",
            applicant(&sla(64, 1_000_000_000, 3)),
        ),
        (
            "failed[0].members[0]",
            format!(
                r#"{{"servers": [{server}], "failed": [{{"id": "f", "demand": [1, 1, 1], "members": ["x"]}}]}}"#
            ),
        ),
        (
            "tenants[0].placement[0]",
            tenant(r#""placement": ["x"], "request": [[1, 1, 1]], "reserved_per_s": 1"#),
        ),
        (
            "tenants[0].placement[1]",
            tenant(r#""placement": ["s", "s"], "request": [[1, 1, 1]], "reserved_per_s": 1"#),
        ),
        (
            "tenants[0].request",
            tenant(r#""placement": ["s"], "request": [[1, 1, 1], [1, 1, 1]], "reserved_per_s": 1"#),
        ),
        (
            "tenants[0].request",
            tenant(r#""placement": ["s"], "request": [[0, 0, 0]], "reserved_per_s": 1"#),
        ),
        (
            "tenants[0].reserved_per_s",
            tenant(r#""placement": ["s"], "request": [[1, 1, 1]], "reserved_per_s": -1"#),
        ),
        (
            "tenants[0].used_per_s",
            tenant(r#""placement": ["s"], "request": [[1, 1, 1]], "reserved_per_s": 1, "used_per_s": 2"#),
        ),
        ("tenants[0]", tenant(r#""placement": ["s"]"#)),
    ] {
        for arguments in [&["place", "--online", "-"][..], &["conserve", "-"][..]] {
            let output = run(arguments, &instance);
            let said = String::from_utf8_lossy(&output.stderr).to_string();
            assert_eq!(output.status.code(), Some(2), "{instance}: {said}");
            assert!(said.contains(field), "{instance}: {said} names {field}");
            assert!(output.stdout.is_empty());
        }
    }
    assert_eq!(
        run(&["place", "-"], "{}").status.code(),
        Some(2),
        "on-line or off-line"
    );
    let rounds = |rounds: &str, instance: &str| run(&["conserve", "--crowd-rounds", rounds, "-"], instance);
    assert!(rounds("1000", &hosted().to_string()).status.success());
    let refused = rounds("1001", &hosted().to_string());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("1001 is not in"));
    assert_eq!(run(&["conserve", "/nowhere.json"], "").status.code(), Some(2));
}

/// `quorate-planner schema > docs/reference/planner.schema.json` writes it again.
#[test]
fn the_schema_is_fresh() {
    let printed = run(&["schema"], "");
    let kept = include_str!("../../../docs/reference/planner.schema.json");
    let is_fresh = String::from_utf8(printed.stdout).unwrap() == kept;
    assert!(
        is_fresh,
        "write docs/reference/planner.schema.json again: see above"
    );
}

/// `demand` and admission agree to the last token: the answer is compared with the placement crate's own.
#[test]
fn demand_is_what_admission_computes() {
    let profile = with_batches();
    let inline: Value = serde_json::from_str(&std::fs::read_to_string(WITH_BATCHES).unwrap()).unwrap();
    let (mut slas, mut wholes) = (Vec::new(), Vec::new());
    for durability in [Durability::InMemory, Durability::Persistent] {
        for degree in [1, 2, 3, 5, 7] {
            for (size, rate_per_s) in [
                (1, 1),
                (64, 999),
                (700, 1_000),
                (8_193, 7_000),
                (1 << 20, 90_000_000),
            ] {
                slas.push(
                    json!({"durability": durability, "replication_degree": degree, "request_size_bytes": size,
                    "rate_per_s": rate_per_s, "retention_bytes": 1 << 20}),
                );
                wholes.push(Sla {
                    read_rate_per_s: 0,
                    durability,
                    replication_degree: degree,
                    min_replicas: None,
                    request_size_bytes: size,
                    rate_per_s,
                    region: "local".into(),
                    retention_bytes: 1 << 20,
                    retention_age_s: None,
                    latency: Default::default(),
                });
            }
        }
    }
    let by_flag = answer(
        &["demand", "--profile", WITH_BATCHES, "-"],
        &json!({"slas": slas}),
    );
    let by_request = answer(&["demand", "-"], &json!({"profile": inline, "slas": slas}));
    assert_eq!(by_flag, by_request);
    assert_eq!(by_flag["profile_version"], json!(profile.version));
    for (sla, answered) in wholes.iter().zip(by_flag["slas"].as_array().unwrap()) {
        let (demands, budget) = (profile.demands(sla), profile.budget(sla));
        let replicas = answered["replicas"].as_array().unwrap();
        assert_eq!(replicas.len(), usize::from(sla.replication_degree));
        assert_eq!(answered["sla"]["rate_per_s"], json!(sla.rate_per_s));
        assert_eq!(answered["shard_peak_per_s"], json!(profile.shard_peak_per_s(sla)));
        for (position, replica) in replicas.iter().enumerate() {
            let demand = demands.at(position);
            assert_eq!(replica["reserved_tokens_per_s"], json!(demand.rates()));
            assert_eq!(replica["memory_bytes"], json!(demand.space().memory_bytes));
            assert_eq!(replica["disk_bytes"], json!(demand.space().disk_bytes));
            assert_eq!(
                replica["reserved_milli_per_s"],
                json!(budget.reserved_milli_at(position))
            );
            assert_eq!(
                replica["request_milli"],
                json!(profile.request_milli(sla)[position])
            );
        }
    }
    let roles = |n: usize| -> Vec<&Value> {
        let replicas = by_flag["slas"][n]["replicas"].as_array().unwrap();
        replicas.iter().map(|replica| &replica["role"]).collect()
    };
    assert_eq!(roles(0), ["sole"]);
    assert_eq!(roles(10), ["head", "follower", "tail"]);
}

#[test]
fn a_demand_request_that_cannot_be_used_is_refused_by_field() {
    let sla =
        r#"{"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 1}"#;
    let refused = |arguments: &[&str], request: &str, field: &str| {
        let output = run(arguments, request);
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{request}: {said}");
        assert!(said.contains(field), "{request}: {said} names {field}");
        assert!(output.stdout.is_empty());
    };
    with_batches();
    refused(&["demand", "-"], "{}", "missing field `slas`");
    refused(
        &["demand", "-"],
        r#"{"slas": [], "sneaky": 1}"#,
        "unknown field `sneaky`",
    );
    let eight = sla.replace("degree\": 3", "degree\": 8");
    refused(
        &["demand", "-"],
        &format!(r#"{{"slas": [{sla}, {eight}]}}"#),
        "slas[1].replication_degree",
    );
    refused(
        &["demand", "-"],
        &format!(r#"{{"profile": {{"format": 9}}, "slas": [{sla}]}}"#),
        "profile: ",
    );
    let both = format!(r#"{{"profile": {{}}, "slas": [{sla}]}}"#);
    refused(
        &["demand", "--profile", WITH_BATCHES, "-"],
        &both,
        "--profile names another one",
    );
}
