//! Profiles: accepted and refused files, demands and budgets.

use super::*;

fn sla(durability: Durability, degree: u8, size: u32, rate: u64) -> Sla {
    let json = serde_json::json!({
        "durability": durability, "replication_degree": degree, "request_size_bytes": size, "rate_per_s": rate
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn the_default_is_valid_and_marked_as_an_estimate() {
    let profile = Profile::default_profile();
    assert!(profile.provisional && profile.source.contains("Estimate"));
}

#[test]
fn demands_follow_roles_sizes_and_durability() {
    let profile = Profile::default_profile();
    let demands = profile.demands(&sla(Durability::InMemory, 3, 64, 1_000));
    // 1.5 µs, 1.2 µs, 1.2 µs; 64 + 128/4 bytes a copy, 32/4 an ack.
    assert_eq!(demands.at(0).rates(), [1_500_000, 1_000 * (2 * 96 + 2 * 8), 0]);
    assert_eq!(demands.at(1).rates(), [1_200_000, 1_000 * 2 * 96, 0]);
    assert_eq!(demands.at(2).rates(), [1_200_000, 1_000 * (96 + 8), 0]);
    let sole = profile.demands(&sla(Durability::Persistent, 1, 64, 1_000));
    assert_eq!(sole.at(0).rates(), [1_950_000, 1_000 * (96 + 8), 2_000_000]);
    assert_eq!(sole.all().len(), 1);
    for (size, operations) in [(8_192, 2), (8_193, 4), (16_384, 4), (1 << 20, 256)] {
        let demands = profile.demands(&sla(Durability::Persistent, 3, size, 1));
        assert_eq!(demands.tail().0[2], operations * 1_000, "{size}");
    }
    // Sizes between 64 and 256, and beyond 32768, are interpolated.
    assert_eq!(
        profile.demands(&sla(Durability::InMemory, 3, 164, 1_000)).at(0).0[0],
        1_600_000
    );
    assert_eq!(
        profile.demands(&sla(Durability::InMemory, 3, 132_768, 1)).at(0).0[0],
        134_204
    );
    assert_eq!(
        profile.demands(&sla(Durability::InMemory, 3, 1, 1)).at(0).0[0],
        1_500
    );
}

#[test]
fn one_shard_bounds_a_group() {
    let profile = Profile::default_profile();
    assert_eq!(
        profile.shard_peak_per_s(&sla(Durability::InMemory, 3, 64, 1)),
        533_333
    );
}

#[test]
fn the_busiest_thread_bounds_a_group_and_all_threads_are_charged() {
    let mut json: serde_json::Value = serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
    let sla = sla(Durability::InMemory, 3, 64, 1_000);
    let plain = Profile::parse(&json.to_string()).unwrap();
    for role in ["head", "follower", "tail"] {
        for point in json["cpu"]["in_memory"][role].as_array_mut().unwrap() {
            point["busiest_ns"] = (point["cpu_ns"].as_u64().unwrap() / 2).into();
        }
    }
    let halved = Profile::parse(&json.to_string()).unwrap();
    assert_eq!(halved.demands(&sla), plain.demands(&sla));
    assert_eq!(halved.shard_peak_per_s(&sla), 1_066_666);
    json["cpu"]["in_memory"]["tail"][0]["busiest_ns"] = 1_201.into();
    let problem = Profile::parse(&json.to_string()).unwrap_err();
    assert_eq!(problem.field, "cpu.in_memory.tail[0].busiest_ns");
}

#[test]
fn a_measured_profile_knows_its_machine_and_servers() {
    let mut json: serde_json::Value = serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
    let here = Machine::of_cpuinfo("processor\t: 0\nmodel name\t: Some: CPU 7\n", 16);
    assert_eq!((here.cpu.as_str(), here.cores), ("Some: CPU 7", 16));
    assert_eq!(
        Profile::default_profile().mismatch(Some(&here), "1.0"),
        None,
        "an estimate is nobody's"
    );
    json["format"] = 2.into();
    json["provisional"] = false.into();
    assert_eq!(Profile::parse(&json.to_string()).unwrap_err().field, "machine");
    json["machine"] = serde_json::json!({"cpu": "Some: CPU 7", "cores": 16});
    json["servers_version"] = "1.0".into();
    let measured = Profile::parse(&json.to_string()).unwrap();
    assert_eq!(measured.mismatch(Some(&here), "1.0"), None);
    assert_eq!(
        measured.mismatch(None, "1.0"),
        None,
        "an older server does not say"
    );
    assert!(
        measured
            .mismatch(Some(&here), "1.1")
            .unwrap()
            .contains("version 1.0")
    );
    let other = Machine { cores: 8, ..here };
    assert!(
        measured
            .mismatch(Some(&other), "1.0")
            .unwrap()
            .contains("16 × Some: CPU 7")
    );
    let again: Profile = serde_json::from_str(&serde_json::to_string(&measured).unwrap()).unwrap();
    assert_eq!(again, measured);
}

#[test]
fn a_budget_passes_the_declared_rate_and_prices_other_sizes() {
    let profile = Profile::default_profile();
    for durability in [Durability::InMemory, Durability::Persistent] {
        for size in [1, 64, 1_000, 8_192, 100_000, 1 << 20] {
            let sla = sla(durability, 3, size, 7_919);
            let budget = profile.budget(&sla);
            let demand = profile.demands(&sla).at(0);
            let tokens = budget.tokens_per_s_milli.map(|milli| milli.div_ceil(1_000));
            assert_eq!(
                tokens,
                demand.rates(),
                "the demand is the reserved rate: {durability:?} {size}"
            );
            let small = budget.cost.of(1, 1);
            let large = budget.cost.of(1, 1 << 20);
            assert!(
                (0..2).all(|i| small[i] <= large[i] && large[i] >= (1 << 20)),
                "{small:?} {large:?}"
            );
        }
    }
    // Declared 1 MiB: a small entry costs little, though not nothing, of each resource.
    let cost = profile.budget(&sla(Durability::Persistent, 3, 1 << 20, 10)).cost;
    let (small, declared) = (cost.of(1, 64), cost.of(1, 1 << 20));
    assert!(
        (0..3).all(|i| small[i] > 0 && small[i] * 100 < declared[i]),
        "{small:?} {declared:?}"
    );
}

/// The default with the cost of a batch itself: four entries share one.
fn with_batches() -> Profile {
    let mut json: serde_json::Value = serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
    json["format"] = 3.into();
    for durability in ["in_memory", "persistent"] {
        json["cpu"][durability]["batch_ns"] =
            serde_json::json!({"head": 2_000, "follower": 1_600, "tail": 1_200});
    }
    Profile::parse(&json.to_string()).unwrap()
}

/// Followers commit enough for any batches that a group sends with burst capacity.
#[test]
fn a_commitment_is_enough_for_short_batches() {
    let profile = with_batches();
    for durability in [Durability::InMemory, Durability::Persistent] {
        for (size, rate) in [(1, 1), (64, 500), (64, 100_000), (16_384, 3_000)] {
            let sla = sla(durability, 3, size, rate);
            let budget = profile.budget(&sla);
            for (position, full) in profile.request_milli(&sla).into_iter().enumerate() {
                let committed = budget.burst_milli_at(position);
                let mut dearest = full;
                for entries in 1..=4u64 {
                    let charged = budget.batch_milli(entries, entries * u64::from(size));
                    let short = profile.short_batch(durability, role_at(position, 3)).of(entries);
                    // The head counts a batch as so many requests, in its dearest resource.
                    let head = budget.request_milli();
                    let requests = (0..3)
                        .filter(|i| head[*i] > 0)
                        .map(|i| charged[i] as f64 / head[i] as f64)
                        .fold(0.0, f64::max);
                    for i in 0..3 {
                        let costs = (full[i] * entries + short[i]) as f64 / requests;
                        assert!(
                            costs <= committed[i] as f64 * (1.0 + 1e-9),
                            "{sla:?} {position} {entries} {i}: {costs}"
                        );
                        dearest[i] = dearest[i].max(costs.ceil() as u64);
                    }
                }
                // The commitment is no larger than the dearest batch needs.
                assert!(
                    (0..3).all(|i| committed[i] <= dearest[i] + 1),
                    "{committed:?} {dearest:?}"
                );
                assert!(position > 0 || committed == full, "{committed:?} {full:?}");
            }
        }
    }
    let sla = sla(Durability::Persistent, 3, 64, 500);
    let plain = Profile::default_profile();
    let costs: Vec<[u64; 3]> = (0..3).map(|at| plain.budget(&sla).burst_milli_at(at)).collect();
    assert_eq!(costs, plain.request_milli(&sla), "where batches cost nothing");
}

#[test]
fn demands_are_for_full_batches_and_some_single_appends() {
    let (plain, profile) = (Profile::default_profile(), with_batches());
    for durability in [Durability::InMemory, Durability::Persistent] {
        for (rate, alone) in [(1, 1), (1_000, 1_000), (100_000, SINGLE_ENTRY_APPENDS_PER_S)] {
            let sla = sla(durability, 3, 64, rate);
            let (before, now) = (plain.demands(&sla), profile.demands(&sla));
            // Three quarters of a batch's nanoseconds for each that comes alone.
            let more = [1_500, 1_200, 900].map(|ns| ns * alone);
            for (position, more) in more.into_iter().enumerate() {
                assert_eq!(now.at(position).0[0], before.at(position).0[0] + more);
            }
            let budget = profile.budget(&sla);
            let reserved = budget.tokens_per_s_milli.map(|milli| milli.div_ceil(1_000));
            assert_eq!(
                reserved,
                now.at(0).rates(),
                "the rate that passes is the reserved rate"
            );
            for position in 0..3 {
                let reserved = budget
                    .reserved_milli_at(position)
                    .map(|milli| milli.div_ceil(1_000));
                assert_eq!(
                    reserved,
                    now.at(position).rates(),
                    "and the rate kept while idle parts are used for bursts"
                );
            }
            let one = budget.request_milli();
            assert_eq!(
                one,
                plain.budget(&sla).request_milli(),
                "in a full batch as before"
            );
            assert_eq!(budget.batch_milli(4, 4 * 64), one.map(|milli| 4 * milli));
            assert_eq!(budget.batch_milli(8, 8 * 64), one.map(|milli| 8 * milli));
            let [cpu, network, storage] = budget.batch_milli(1, 64);
            assert_eq!((cpu, storage), (one[0] + 1_500_000, one[2]));
            // A batch of one entry has all of the headers and acknowledgements, not a quarter.
            assert_eq!(network, 1_000 * (2 * 64 + 2 * 128 + 2 * 32));
        }
    }
    let sla = sla(Durability::InMemory, 3, 64, 100_000);
    assert_eq!(
        profile.shard_peak_per_s(&sla),
        plain.shard_peak_per_s(&sla) - SINGLE_ENTRY_APPENDS_PER_S
    );
    let mut slow = with_batches();
    slow.cpu.in_memory.batch_ns.as_mut().expect("it has").tail = CPU_NS_MAX;
    // An append that comes alone takes three quarters of a second, and the shard has 0.8.
    assert_eq!(slow.shard_peak_per_s(&sla), 1);
    assert_eq!(profile.short_milli(&sla, 1.0)[2][0], 900_000.0);
    assert_eq!(profile.short_milli(&sla, 4.0), [[0.0; 3]; 3]);
}

#[test]
fn a_profile_from_before_batches_were_measured_is_used_as_it_is() {
    let budget = Profile::default_profile().budget(&sla(Durability::InMemory, 3, 64, 1_000));
    assert!(budget.short_batch.is_free());
    assert_eq!(budget.batch_milli(1, 64), budget.request_milli());
    let reserved = budget.request_milli_at(1).map(|milli| 1_000 * milli);
    assert_eq!(budget.reserved_milli_at(1), reserved);
    let text = serde_json::to_string(&budget).unwrap();
    assert!(
        !text.contains("short_batch") && !text.contains("replica_reserved_milli"),
        "as earlier versions wrote it: {text}"
    );
    assert_eq!(serde_json::from_str::<Budget>(&text).unwrap(), budget);
    let mut json = serde_json::to_value(with_batches()).unwrap();
    json["format"] = 2.into();
    let problem = Profile::parse(&json.to_string()).unwrap_err().to_string();
    assert_eq!(problem, "cost profile: cpu.in_memory.batch_ns: is of format 3");
    json["format"] = 3.into();
    json["cpu"]["persistent"]["batch_ns"]["tail"] = 1_000_000_001.into();
    assert_eq!(
        Profile::parse(&json.to_string()).unwrap_err().field,
        "cpu.persistent.batch_ns"
    );
}

#[test]
fn a_bad_profile_names_the_field() {
    let good: serde_json::Value = serde_json::from_str(include_str!("../profiles/default.json")).unwrap();
    let cases = [
        ("/format", serde_json::json!(5), "format"),
        ("/cpu/read/disk", serde_json::json!([]), "cpu.read.disk"),
        (
            "/cpu/read/page_ns",
            serde_json::json!(u32::MAX),
            "cpu.read.page_ns",
        ),
        ("/format", serde_json::json!(3), "cpu.in_memory.batch_ns"),
        ("/safety_factor", serde_json::json!(1.5), "safety_factor"),
        ("/shard_cores", serde_json::json!(0), "shard_cores"),
        ("/network/ack_bytes", serde_json::json!(-1), "network.ack_bytes"),
        (
            "/network/entries_per_batch",
            serde_json::json!(0),
            "network.entries_per_batch",
        ),
        ("/storage/io_bytes", serde_json::json!("8k"), "storage.io_bytes"),
        ("/cpu/in_memory/head", serde_json::json!([]), "cpu.in_memory.head"),
        (
            "/cpu/persistent/tail/2/size_bytes",
            serde_json::json!(64),
            "cpu.persistent.tail[2].size_bytes",
        ),
        (
            "/cpu/persistent/tail/1/cpu_ns",
            serde_json::json!(1),
            "cpu.persistent.tail[1].cpu_ns",
        ),
        ("/source", serde_json::json!(" "), "source"),
        ("/storage/writes", serde_json::json!(u32::MAX), "storage.writes"),
        ("/shard_cores", serde_json::json!(1e300), "shard_cores"),
        (
            "/cpu/in_memory/head/0/cpu_ns",
            serde_json::json!(u32::MAX),
            "cpu.in_memory.head[0].cpu_ns",
        ),
    ];
    for (pointer, value, field) in cases {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert_eq!(Profile::parse(&bad.to_string()).unwrap_err().field, field);
    }
    let mut bad = good.clone();
    bad["network"]["colour"] = serde_json::json!("red");
    assert!(
        Profile::parse(&bad.to_string())
            .unwrap_err()
            .problem
            .contains("colour")
    );
    assert!(Profile::parse("{}").is_err() && Profile::parse("").is_err());
}

#[test]
fn a_low_latency_class_takes_more_of_servers_and_uses_no_more() {
    let profile = Profile::default_profile();
    for durability in [Durability::InMemory, Durability::Persistent] {
        let standard = sla(durability, 3, 256, 10_000);
        let low = Sla {
            latency: quorate_types::Latency::Low,
            ..standard.clone()
        };
        let (one, other) = (profile.demands(&standard), profile.demands(&low));
        for (one, other) in one.all().iter().zip(other.all()) {
            assert_eq!(other.rates(), one.rates().map(|rate| 2 * rate));
            assert_eq!(other.space(), one.space(), "room is no matter of latency");
        }
        assert_eq!(profile.budget(&standard), profile.budget(&low));
        let peaks = [&standard, &low].map(|sla| profile.shard_peak_per_s(sla));
        assert!(peaks[1] <= peaks[0] / 2 && peaks[1] > peaks[0] / 4, "{peaks:?}");
    }
}

#[test]
fn measured_latencies_hold_up_to_the_largest_measured_size() {
    let profile = Profile::default_profile();
    let p99_us = |durability, size| profile.commit_p99_us(&sla(durability, 3, size, 10));
    assert_eq!(p99_us(Durability::InMemory, 1), Some(500));
    assert_eq!(p99_us(Durability::InMemory, 544), Some(1_800), "half way");
    assert_eq!(p99_us(Durability::Persistent, 16_384), Some(8_200));
    assert_eq!(p99_us(Durability::Persistent, 16_385), None);
    let mut json = serde_json::to_value(&profile).unwrap();
    json.as_object_mut().unwrap().remove("latency");
    let unmeasured = Profile::parse(&json.to_string()).unwrap();
    assert_eq!(
        unmeasured.commit_p99_us(&sla(Durability::InMemory, 3, 64, 10)),
        None
    );
}
