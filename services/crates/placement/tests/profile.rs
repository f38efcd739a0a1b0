//! Profile files with any numbers: each is refused with the field at fault, or can be used.

use proptest::prelude::*;
use quorate_placement::Profile;
use quorate_types::{Durability, Sla};
use serde_json::{Value, json};

fn default_json() -> Value {
    serde_json::to_value(Profile::default_profile()).unwrap()
}

/// Numbers of any kind, the extreme ones often.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            json!(0),
            json!(1),
            json!(2),
            json!(512),
            json!(8_192),
            json!(1_000_000_000),
            json!(1_u32 << 30),
            json!(u32::MAX),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(-1),
            json!(0.5),
            json!(f64::MIN_POSITIVE),
            json!(f64::MAX),
        ]),
        any::<u32>().prop_map(|one| json!(one)),
        (0..31_u32, any::<u32>()).prop_map(|(bits, one)| json!(one >> bits)),
        any::<f64>().prop_map(|one| json!(one)),
    ]
}

/// Every number of the file, as a pointer to it.
fn pointers(json: &Value, at: &str, found: &mut Vec<String>) {
    match json {
        Value::Number(_) => found.push(at.to_string()),
        Value::Object(fields) => {
            for (name, value) in fields {
                pointers(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                pointers(value, &format!("{at}/{number}"), found);
            }
        }
        _ => {}
    }
}

fn use_it(profile: &Profile, sla: &Sla) {
    let demands = profile.demands(sla);
    assert_eq!(demands.all().len(), usize::from(sla.replication_degree));
    let _sum = quorate_placement::Amounts::sum(demands.all().iter().copied());
    let _p99_us = profile.commit_p99_us(sla);
    let budget = profile.budget(sla);
    let _dearest = budget.batch_milli(4_096, 16 << 20);
    assert!(budget.reserved_per_s() >= sla.rate_per_s);
    let _peak = profile.shard_peak_per_s(sla);
}

fn sla() -> impl Strategy<Value = Sla> {
    let size = prop_oneof![Just(1_u32), Just(1 << 20), 1..=1_u32 << 20];
    let rate = prop_oneof![Just(1_u64), Just(1_000_000_000), 1..=1_000_000_000_u64];
    (any::<bool>(), prop::sample::select(vec![1, 3, 5, 7]), size, rate).prop_map(
        |(is_persistent, degree, size, rate)| {
            let durability = if is_persistent {
                Durability::Persistent
            } else {
                Durability::InMemory
            };
            serde_json::from_value(json!({
                "durability": durability, "replication_degree": degree, "request_size_bytes": size, "rate_per_s": rate
            }))
            .unwrap()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    /// A few numbers are exchanged: most such files are refused, and accepted ones must not panic anywhere.
    #[test]
    fn accepted_files_can_be_used(
        changes in prop::collection::vec((any::<prop::sample::Index>(), number()), 1..4), sla in sla(),
    ) {
        let mut json = default_json();
        json["format"] = json!(3);
        for durability in ["in_memory", "persistent"] {
            json["cpu"][durability]["batch_ns"] = json!({"head": 5_000, "follower": 4_000, "tail": 3_000});
        }
        let mut places = Vec::new();
        pointers(&json, "", &mut places);
        for (place, value) in changes {
            *json.pointer_mut(place.get::<String>(&places)).unwrap() = value;
        }
        if let Ok(profile) = Profile::parse(&json.to_string()) {
            use_it(&profile, &sla);
        }
    }

    /// Both ends of each curve are set at once, rising: extreme values that pass the checks of order.
    #[test]
    fn extreme_curves_can_be_used(
        low in (1..=1_u32 << 30, 1..=1_000_000_000_u32), rise in (1..=1_u32 << 30, 0..=1_000_000_000_u32),
        writes in 1..=64_u32, io_bytes in 512..=1_u32 << 30, header in 0..=1_u32 << 30, sla in sla(),
    ) {
        let mut json = default_json();
        let high = (low.0.saturating_add(rise.0), low.1.saturating_add(rise.1));
        for durability in ["in_memory", "persistent"] {
            for role in ["head", "follower", "tail"] {
                json["cpu"][durability][role] = json!([
                    {"size_bytes": low.0, "cpu_ns": low.1}, {"size_bytes": high.0, "cpu_ns": high.1},
                ]);
            }
        }
        json["storage"] = json!({"io_bytes": io_bytes, "writes": writes});
        json["network"] = json!({"batch_header_bytes": header, "ack_bytes": header, "entries_per_batch": 1});
        match Profile::parse(&json.to_string()) {
            Ok(profile) => use_it(&profile, &sla),
            Err(error) => prop_assert!(high.0 > 1 << 30 || high.1 > 1_000_000_000, "{error}"),
        }
    }
}

#[test]
fn one_write_too_many_is_refused_and_not_a_panic() {
    let mut json = default_json();
    json["storage"]["writes"] = json!(u32::MAX);
    assert_eq!(
        Profile::parse(&json.to_string()).unwrap_err().field,
        "storage.writes"
    );
}
