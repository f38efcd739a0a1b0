//! Instances that cannot be computed with are refused before anything is, with the field, the reason and the remedy.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

fn run(arguments: &[&str], instance: &Value) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quorate-planner"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that reads nothing may have ended already; its output shows what it did.
    let _ended = stdin.write_all(instance.to_string().as_bytes()).is_err();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Refused by both commands, in these words.
fn is_refused(instance: &Value, words: &str) {
    for arguments in [&["place", "--online", "-"][..], &["conserve", "-"][..]] {
        let output = run(arguments, instance);
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {instance}: {said}");
        assert!(said.contains(words), "{said} says {words}");
        assert!(output.stdout.is_empty());
    }
}

fn is_accepted(arguments: &[&str], instance: &Value) -> Value {
    let output = run(arguments, instance);
    let said = String::from_utf8_lossy(&output.stderr).to_string();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn tenant(id: &str, placement: &[&str], reserved_per_s: u64) -> Value {
    let request: Vec<_> = placement.iter().map(|_| json!([0.01, 0.01, 1])).collect();
    json!({"id": id, "placement": placement, "request": request, "reserved_per_s": reserved_per_s})
}

#[test]
fn an_id_names_one_thing() {
    let servers = json!([{"id": "s", "capacity": [9, 9, 900]}, {"id": "t", "capacity": [9, 9, 900]}]);
    let applicant = |id: &str| json!({"id": id, "sla_per_s": 1, "replicas": [[1, 1, 1]]});
    let failed = |id: &str| json!({"id": id, "demand": [1, 1, 1], "members": ["s"]});
    let lists = [
        ("applicants", [applicant("x"), applicant("y"), applicant("x")]),
        ("failed", [failed("x"), failed("y"), failed("x")]),
        (
            "tenants",
            [
                tenant("x", &["s"], 1),
                tenant("y", &["s"], 1),
                tenant("x", &["t"], 1),
            ],
        ),
    ];
    for (list, three) in lists {
        let words = format!(r#"{list}[2].id: "x" is the id of {list}[0], too: give each an id of its own"#);
        is_refused(&json!({"servers": servers, list: three}), &words);
    }
    let twice = json!({"servers": [servers[0], servers[1], servers[0]]});
    is_refused(&twice, r#"servers[2].id: "s" is the id of servers[0], too"#);
    // A failed replica has the name of its tenant.
    let same = json!({"servers": servers, "applicants": [applicant("x")], "failed": [failed("x")],
        "tenants": [tenant("x", &["s"], 1)]});
    is_accepted(&["place", "--online", "-"], &same);
}

#[test]
fn a_server_holds_no_more_reservations_than_it_has() {
    let servers = json!([{"id": "s", "capacity": [2, 2, 250]}, {"id": "t", "capacity": [8, 4, 200]}]);
    let full = [tenant("a", &["s", "t"], 150), tenant("b", &["t"], 50)];
    let whole = json!({"servers": servers, "tenants": full});
    for arguments in [&["place", "--online", "-"][..], &["conserve", "-"][..]] {
        let answer = is_accepted(arguments, &whole);
        assert_eq!(
            answer["servers"][1]["left"][2],
            json!(0.0),
            "all of it may be reserved"
        );
    }
    let over = json!({"servers": servers, "tenants": [full[0], full[1], tenant("c", &["s", "t"], 1)]});
    is_refused(
        &over,
        r#"tenants[2]: reserves storage_io on server "t" beyond its capacity: 201 of 200, with the tenants before it; lower a reservation, or move a tenant to another server"#,
    );
    // Reservations of SLAs count with what is kept for appends that come alone.
    let sla = json!({"durability": "persistent", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 126});
    let by_sla = json!({"servers": servers, "tenants": [{"id": "a", "placement": ["s"], "sla": sla}]});
    is_refused(
        &by_sla,
        r#"tenants[0]: reserves network on server "s" beyond its capacity"#,
    );
}

/// The array of three amounts at a path of the instance's schema: the largest of each resource.
fn maxima(schema: &Value) -> Vec<f64> {
    assert_eq!((&schema["minItems"], &schema["maxItems"]), (&json!(3), &json!(3)));
    let each = schema["prefixItems"]
        .as_array()
        .expect("one schema for each resource");
    each.iter().map(|one| one["maximum"].as_f64().unwrap()).collect()
}

#[test]
fn the_schema_has_the_limits_of_the_program() {
    let output = run(&["schema"], &Value::Null);
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |kind: &str, field: &str| schema["instance"]["$defs"][kind]["properties"][field].clone();
    let with = |i: usize, amount: f64| {
        let mut amounts = vec![0.0; 3];
        amounts[i] = amount;
        amounts
    };
    let server = json!({"id": "s", "capacity": [1, 1, 1]});
    type Make = fn(Value) -> Value;
    let vectors: [(Value, Make); 4] = [
        (
            of("Server", "capacity"),
            |v| json!({"servers": [{"id": "s", "capacity": v}]}),
        ),
        (
            of("Failed", "demand"),
            |v| json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}], "failed": [{"id": "f", "demand": v, "members": []}]}),
        ),
        (of("Applicant", "replicas")["items"].clone(), |v| {
            json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}],
                "applicants": [{"id": "a", "sla_per_s": 1, "replicas": [v]}]})
        }),
        (of("Tenant", "request")["items"].clone(), |v| {
            json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}],
                "tenants": [{"id": "t", "placement": ["s"], "request": [v], "reserved_per_s": 0}]})
        }),
    ];
    for (schema, make) in vectors {
        for (i, most) in maxima(&schema).into_iter().enumerate() {
            is_accepted(&["place", "--online", "-"], &make(json!(with(i, most))));
            let beyond = make(json!(with(i, most * 1.000_001)));
            is_refused(&beyond, "must be at most");
        }
    }
    let sla = |field: &str, value: u64| {
        let mut sla = json!({"durability": "in_memory", "replication_degree": 1, "request_size_bytes": 1,
            "rate_per_s": 1});
        sla[field] = value.into();
        json!({"servers": [server], "applicants": [{"id": "a", "sla": sla}]})
    };
    for field in ["replication_degree", "request_size_bytes", "rate_per_s"] {
        let most = of("Sla", field)["maximum"].as_u64().unwrap();
        is_refused(&sla(field, most + 1), &format!("{field}: must be 1 to {most}"));
    }
    let rates: [(Value, &str, Make); 4] = [
        (of("Applicant", "sla_per_s"), "sla_per_s", |v| {
            json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}],
                "applicants": [{"id": "a", "sla_per_s": v, "replicas": [[1, 1, 1]]}]})
        }),
        (of("Tenant", "reserved_per_s"), "reserved_per_s", |v| {
            json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}],
                "tenants": [{"id": "t", "placement": ["s"], "request": [[0, 0, 1]], "reserved_per_s": v}]})
        }),
        (of("Tenant", "used_per_s"), "used_per_s", |v| {
            json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}],
                "tenants": [{"id": "t", "placement": ["s"], "request": [[0, 0, 1]], "reserved_per_s": 1, "used_per_s": v}]})
        }),
        (
            schema["instance"]["$defs"]["Extra"]["oneOf"][2]["properties"]["per_s"].clone(),
            "extra.per_s",
            |v| {
                json!({"servers": [{"id": "s", "capacity": [1, 1, 1]}],
                "tenants": [{"id": "t", "placement": ["s"], "request": [[0, 0, 1]], "reserved_per_s": 0,
                    "extra": {"per_s": v}}]})
            },
        ),
    ];
    for (schema, field, make) in rates {
        let most = schema["maximum"].as_u64().unwrap();
        is_refused(&make(json!(most + 1)), field);
    }
}

/// Requests that cost next to nothing: counted one by one they would be 10^15 and more.
fn next_to_nothing() -> Value {
    let request = json!([[1e-12, 0, 0], [1e-12, 0, 0]]);
    let tenant = |id: &str, placement: [&str; 2]| json!({"id": id, "placement": placement, "request": request, "reserved_per_s": 0, "extra": "all"});
    let servers: Vec<Value> = ["s", "t", "u"]
        .map(|id| json!({"id": id, "capacity": [1000, 0, 0]}))
        .to_vec();
    json!({"servers": servers, "tenants": [tenant("a", ["s", "t"]), tenant("b", ["t", "u"]), tenant("c", ["u", "s"])]})
}

#[test]
fn every_algorithm_ends() {
    for algorithm in ["cdrf", "head", "all"] {
        let began = Instant::now();
        let output = run(
            &[
                "conserve",
                "--algorithm",
                algorithm,
                "--repeat",
                "1000",
                "--requests-max",
                "1000000",
                "-",
            ],
            &next_to_nothing(),
        );
        let said = String::from_utf8_lossy(&output.stderr).to_string();
        assert_eq!(output.status.code(), Some(2), "{algorithm}: {said}");
        for words in [
            "instance: tenants: ",
            "more than 1000000 requests fit",
            "one request at a time",
            "--algorithm cdrf-exact or level",
            "extra",
            "--requests-max",
        ] {
            assert!(said.contains(words), "{algorithm}: {said} says {words}");
        }
        // An unoptimised build, on a machine that does other things, too.
        assert!(began.elapsed() < Duration::from_secs(120), "{algorithm}");
    }
    for algorithm in ["cdrf-exact", "level"] {
        let answer = is_accepted(&["conserve", "--algorithm", algorithm, "-"], &next_to_nothing());
        assert_eq!(
            answer["tenants"][0]["utility_per_s"],
            json!(500_000_000_000_000u64),
            "{algorithm}"
        );
    }
}
