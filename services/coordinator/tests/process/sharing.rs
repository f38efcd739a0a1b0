//! Reports of what servers share, and the rates that they are told.

use quorate_types::control::{SharingReport, SharingWant, ToCoordinator};
use quorate_types::{GroupConfig, GroupId};
use serde_json::json;
use uuid::Uuid;

use crate::stage::{Coordinator, Server, live_until};

fn report(server: &Server, config: &GroupConfig, interval: u64) -> SharingReport {
    let is_head = config.head().unwrap().server_id == server.id();
    let want = SharingWant {
        group_id: config.group_id,
        epoch: config.epoch,
        extra_per_s: 40,
        using: None,
    };
    SharingReport {
        interval,
        interval_us: 100_000,
        free: [u64::MAX / 1_000; 3],
        wants: Vec::from_iter(is_head.then_some(want)),
    }
}

#[test]
fn servers_that_report_are_told_rates_of_the_whole_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=3)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    assert!(
        servers
            .iter()
            .all(|server| server.welcome.as_ref().unwrap().takes_sharing)
    );
    let id = GroupId(Uuid::from_u128(1));
    let sla = json!({"durability": "persistent", "replication_degree": 3, "request_size_bytes": 64, "rate_per_s": 100});
    let body = json!({"project_id": Uuid::nil(), "sla": sla});
    coordinator.call("PUT", &format!("/v1/groups/{id}"), Some(body));
    let config = live_until(&mut servers, "its configuration", |servers| {
        servers
            .iter()
            .all(|server| !server.configs.is_empty())
            .then(|| servers[0].configs[0].clone())
    });
    let mut interval = 0;
    live_until(&mut servers, "rates at each replica", |servers| {
        interval += 1;
        for server in servers.iter_mut() {
            server.send(&ToCoordinator::Sharing(report(server, &config, interval)));
        }
        let is_told = |server: &Server| {
            server
                .rates
                .iter()
                .any(|rate| (rate.group_id, rate.per_s) == (id, 40))
        };
        servers.iter().all(is_told).then_some(())
    });
    let (status, view) = coordinator.call("GET", "/v1/sharing", None);
    assert_eq!(
        (status, &view["servers"], &view["groups_wanting"]),
        (200, &json!(3), &json!(1)),
        "{view}"
    );
    assert!(view["rounds"].as_u64().unwrap() > 0);
    assert_eq!(view["policy"], "drf");
}

#[test]
fn operators_see_what_moves_and_which_guarantees_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path());
    let mut servers: Vec<Server> = (1..=2)
        .map(|n| Server::join(&coordinator, &format!("s{n}")))
        .collect();
    let project = Uuid::from_u128(8);
    let asked = json!({"guarantee": {"shared_tokens_per_s": 0, "max_tokens_per_s": 900}, "revision": 1});
    let path = format!("/v1/projects/{project}/guarantee");
    let (status, given) = coordinator.call("PUT", &path, Some(asked));
    assert_eq!(status, 200, "{given}");
    let (status, listed) = coordinator.call("GET", "/v1/guarantees", None);
    assert_eq!((status, listed), (200, json!([given])));
    let id = GroupId(Uuid::from_u128(1));
    let sla = json!({"durability": "in_memory", "replication_degree": 1, "request_size_bytes": 64, "rate_per_s": 100});
    coordinator.call(
        "PUT",
        &format!("/v1/groups/{id}"),
        Some(json!({"project_id": project, "sla": sla})),
    );
    let config = live_until(&mut servers, "its configuration", |servers| {
        servers.iter().find_map(|server| server.configs.first().cloned())
    });
    let from = config.head().unwrap().server_id.0;
    let moves = format!("/v1/groups/{id}/moves");
    live_until(&mut servers, "the move", |_| {
        let (status, _) = coordinator.call("POST", &moves, Some(json!({"from_server_id": from})));
        (status == 200).then_some(())
    });
    let balance = live_until(&mut servers, "a round of balancing", |_| {
        let (_, view) = coordinator.call("GET", "/v1/balance", None);
        (view["rounds"].as_u64() > Some(0)).then_some(view)
    });
    assert_eq!(balance["moves"][0]["group_id"], json!(id));
    assert_eq!(balance["moves"][0]["relocation"]["cause"], "operator");
    assert_eq!(balance["moves"][0]["relocation"]["moves"][0]["from"], json!(from));
    assert_eq!(
        (&balance["pressures"], &balance["rate_changes"]),
        (&json!([]), &json!([]))
    );
}
