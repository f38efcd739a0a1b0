//! A group's head, what it tells of itself, and what it may do above its SLA.

use quorate_chain::ClientRef;
use quorate_tokens::Permission;
use quorate_types::config::Member;
use quorate_types::cost::{AppendCost, Budget, ShortBatch};
use quorate_types::{Durability, GroupConfig};
use quorate_wire::client::{Append, NO_EXPECTED_OFFSET};
use uuid::Uuid;

use super::*;
use crate::shard::ClientRequest;
use crate::shard::lone_shard::lone_shard;

const GROUP: GroupId = GroupId(Uuid::from_u128(7));
const ME: ServerId = ServerId(1);
const CLIENT: ClientRef = ClientRef {
    connection: 1,
    channel: 1,
};
const RATE_PER_S: u64 = 10;
const COST: AppendCost = AppendCost {
    fixed_milli: [1_000, 0, 0],
    per_byte_milli: [0; 3],
};
const HOUR_US: Micros = 3_600_000_000;

struct Rig {
    shard: Shard,
    dir: std::path::PathBuf,
    seq: u64,
}

impl Rig {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("quorate-lending-{name}-{}", std::process::id()));
        let shard = lone_shard(&dir, |_| {});
        let mut rig = Self { shard, dir, seq: 0 };
        rig.shard.configure(config(1));
        let permission = Permission {
            may_append: true,
            may_read: true,
            project: None,
            expires_at_s: u64::MAX,
        };
        let (number, session) = (1, 5);
        rig.request(ClientRequest::Attach {
            number,
            session,
            permission,
        });
        rig
    }

    fn request(&mut self, request: ClientRequest) {
        self.shard.group_request(GROUP, CLIENT, request);
        self.shard.flush();
    }

    fn append(&mut self, count: u64) {
        for _ in 0..count {
            self.seq += 1;
            let payload = Bytes::from_static(&[1, 0, 0, 0, 9]);
            let append = Append {
                seq: self.seq,
                floor_index: 0,
                timeout_ms: 0,
                entry_count: 1,
                payload_crc: crc32fast::hash(&payload),
                expected_offset: NO_EXPECTED_OFFSET,
                fencing_token: 0,
                payload,
            };
            let message = Message::Append(append);
            self.request(ClientRequest::Message { message, trace: None });
        }
    }

    fn lend(&mut self, epoch: Epoch, per_s: u64, until: Micros) {
        self.shard.lending(Request::Lend(Lend {
            group_id: GROUP,
            epoch,
            per_s,
            until,
        }));
        self.shard.flush();
    }

    fn ordered(&self) -> u64 {
        self.shard.groups[&GROUP].replica.log().next_offset()
    }

    fn load(&mut self) -> Load {
        let (sender, mut receiver) = oneshot::channel();
        self.shard.lending(Request::Loads(sender));
        receiver.try_recv().expect("it answers at once").remove(0)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.dir).is_err();
    }
}

fn config(epoch: Epoch) -> GroupConfig {
    GroupConfig {
        group_id: GROUP,
        epoch,
        durability: Durability::InMemory,
        replication_degree: 1,
        min_replicas: 1,
        replicas: vec![Member {
            server_id: ME,
            address: "here".to_string(),
        }],
        learners: Vec::new(),
        budget: Budget::for_rate(RATE_PER_S, 1, COST),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
    }
}

#[test]
fn a_head_uses_what_is_lent_and_what_waits_passes_at_once() {
    let mut rig = Rig::new("lent");
    rig.append(200);
    let own = rig.ordered();
    assert!(
        (RATE_PER_S..100).contains(&own),
        "{own}: a second of its rate, and what came meanwhile"
    );
    rig.lend(2, 10_000, now_us() + HOUR_US);
    assert!(rig.ordered() < 100, "of another epoch");
    rig.lend(1, 10_000, now_us() + HOUR_US);
    // Its queue holds what its budget lets through before two seconds are over; clients send the rest again.
    assert!(
        rig.ordered() >= own + RATE_PER_S,
        "{} of {own} before",
        rig.ordered()
    );
    assert_eq!(rig.shard.groups[&GROUP].rate_per_s(), RATE_PER_S + 10_000);
    assert!(rig.shard.groups.get_mut(&GROUP).unwrap().lent_requests() > 0);
    rig.lend(1, 0, 0);
    assert_eq!(rig.shard.groups[&GROUP].rate_per_s(), RATE_PER_S);
}

#[test]
fn nothing_more_passes_on_lent_capacity_when_an_owner_is_back_or_the_epoch_is_over() {
    let mut rig = Rig::new("back");
    rig.append(RATE_PER_S);
    rig.shard.io.shared.lending.set_interval_us(HOUR_US);
    rig.lend(1, 10_000, now_us() + HOUR_US);
    rig.append(50);
    assert!(rig.ordered() >= RATE_PER_S + 50);
    let other = GroupId(Uuid::from_u128(8));
    rig.shard.io.shared.lending.owner_returned(other, 1, now_us());
    let before = rig.ordered();
    let begun = now_us();
    rig.append(15);
    let own = RATE_PER_S * (now_us() - begun).div_ceil(1_000_000) + 1;
    assert!(rig.ordered() <= before + own, "{} of {before}", rig.ordered());
    rig.shard.configure(config(2));
    assert_eq!(rig.shard.groups[&GROUP].rate_per_s(), RATE_PER_S);
}

#[test]
fn the_first_request_of_an_epoch_is_noticed_until_its_servers_keep_the_reservation() {
    let mut rig = Rig::new("first");
    let mut news = rig.shard.io.shared.lending.listen();
    rig.append(1);
    assert!(news.try_recv().is_err(), "sharing began after the group");
    rig.shard.configure(config(2));
    rig.append(1);
    let returned = |news: Result<News, _>| matches!(news, Ok(News::Returned { epoch: 2, .. }));
    assert!(returned(news.try_recv()));
    rig.append(1);
    assert!(news.try_recv().is_err(), "told once");
    let assume = |per_s| Request::Assume {
        group_id: GROUP,
        epoch: 2,
        per_s,
    };
    rig.shard.lending(assume(Some(0)));
    rig.append(1);
    assert!(returned(news.try_recv()), "and again");
    rig.shard.lending(assume(None));
    rig.append(3);
    assert!(news.try_recv().is_err());
}

#[test]
fn a_learner_takes_what_its_place_in_the_chain_will_cost() {
    let mut rig = Rig::new("learner");
    let mut config = config(2);
    let other = Member {
        server_id: ServerId(2),
        address: "there".to_string(),
    };
    config.learners = std::mem::replace(&mut config.replicas, vec![other]);
    config.budget.replica_milli = vec![[1_000, 0, 0], [700, 20, 1]];
    // Of its ten appends each may come alone, and costs as much as four, or five, then.
    config.budget.short_batch = ShortBatch {
        entries: 4,
        lacking_milli: [1_000, 0, 0],
    };
    config.budget.replica_reserved_milli = vec![[40_000, 0, 0], [35_000, 200, 10]];
    rig.shard.configure(config);
    let load = rig.load();
    let places: Vec<(usize, [u64; 3])> = load
        .places
        .iter()
        .map(|place| (place.server, place.cost))
        .collect();
    // What the head counts as four requests costs the tail 3 500.
    assert_eq!(places, [(2, [1_000, 0, 0]), (1, [875, 20, 1])]);
    assert_eq!(load.reserved_per_s, RATE_PER_S);
    assert_eq!(load.reserved, [[40_000, 0, 0], [35_000, 200, 10]]);
}

#[test]
fn a_head_tells_what_was_offered_and_whether_it_was_held_back() {
    let mut rig = Rig::new("load");
    rig.load();
    let begun = now_us();
    rig.append(100);
    let load = rig.load();
    let elapsed_us = now_us() - begun;
    assert_eq!(load.key, (GROUP, 1));
    assert_eq!(load.reserved_per_s, RATE_PER_S);
    assert_eq!(load.places.len(), 1);
    assert_eq!(load.places[0].cost, [1_000, 0, 0]);
    assert!(load.measured.was_held_back);
    assert!(load.measured.beyond_per_s > 0);
    assert!(load.measured.accepted_per_s < load.measured.offered_per_s);
    assert!(
        load.measured.offered_per_s * elapsed_us >= 10 * 1_000_000,
        "{load:?}"
    );
    let calm = rig.load();
    assert!(!calm.measured.was_held_back);
    assert_eq!(calm.measured.beyond_per_s, 0);
    assert_eq!(calm.measured.offered_per_s, 0);
}

#[test]
fn what_was_lent_before_is_told_again_to_who_was_told_less_meanwhile() {
    let mut rig = Rig::new("told");
    let told = |rig: &Rig| rig.shard.groups[&GROUP].lending.told_per_s;
    rig.lend(1, 10_000, now_us() + HOUR_US);
    assert_eq!(told(&rig), [RATE_PER_S + 10_000; 2]);
    rig.shard.configure(config(2));
    assert_eq!(told(&rig), [RATE_PER_S; 2], "the new epoch's notice");
    rig.lend(2, 10_000, now_us() + HOUR_US);
    assert_eq!(told(&rig), [RATE_PER_S + 10_000; 2]);
    // It ends by itself, and a client attaches before anything is lent again.
    let group = rig.shard.groups.get_mut(&GROUP).unwrap();
    group.lending.lent_until = 0;
    assert_eq!(group.rate_for_one(), RATE_PER_S);
    assert_eq!(told(&rig), [RATE_PER_S, RATE_PER_S + 10_000]);
    rig.lend(2, 10_000, now_us() + HOUR_US);
    assert_eq!(told(&rig), [RATE_PER_S + 10_000; 2]);
}

#[test]
fn entries_that_come_alone_are_charged_for_their_batches() {
    let mut rig = Rig::new("alone");
    let mut dear = config(1);
    // An append that comes alone costs five of a full batch.
    dear.budget.short_batch = ShortBatch {
        entries: 5,
        lacking_milli: [1_000, 0, 0],
    };
    rig.shard.configure(dear);
    let begun = now_us();
    rig.load();
    rig.append(200);
    let load = rig.load();
    let elapsed_us = now_us() - begun;
    let elapsed_s = elapsed_us.div_ceil(1_000_000);
    // Two of the ten that a second holds; then as long as it took, and two more for what was full again.
    let most = (1 + elapsed_s) * RATE_PER_S / 5 + 2;
    assert!((2..=most).contains(&rig.ordered()), "{} of {most}", rig.ordered());
    let totals = &rig.shard.groups[&GROUP].counters.totals;
    assert!(totals.throttled_entries > 0, "{totals:?}");
    assert_eq!(totals.throttled_within_sla_entries, 0);
    // Three that came alone, at least, until one was refused: each is as much as five.
    let offered = (load.measured.offered_per_s + 1) * elapsed_us;
    assert!(
        offered >= 3 * 5 * 1_000_000,
        "what it costs is what it wants: {load:?}"
    );
}

/// Of two replicas, of which the other says nothing by itself.
fn config_of_two(epoch: Epoch) -> GroupConfig {
    let mut config = config(epoch);
    config.replication_degree = 2;
    config.replicas.push(Member {
        server_id: ServerId(2),
        address: "there".to_string(),
    });
    config
}

#[test]
fn only_what_is_ordered_is_timed() {
    let mut rig = Rig::new("timed");
    rig.lend(1, 10_000, now_us() + HOUR_US);
    let payload = Bytes::from_static(&[1, 0, 0, 0, 9]);
    for (expected_offset, is_timed) in [(77, false), (NO_EXPECTED_OFFSET, true)] {
        let append = Append {
            seq: 1,
            floor_index: 0,
            timeout_ms: 0,
            entry_count: 1,
            payload_crc: crc32fast::hash(&payload),
            expected_offset,
            fencing_token: 0,
            payload: payload.clone(),
        };
        let message = Message::Append(append);
        let request = ClientRequest::Message { message, trace: None };
        rig.shard.group_request(GROUP, CLIENT, request);
        let window = &rig.shard.groups[&GROUP].lending.window;
        assert_eq!(
            window.is_measuring(),
            is_timed,
            "expected offset {expected_offset}"
        );
    }
    rig.shard.flush();
    assert!(!rig.shard.groups[&GROUP].lending.window.is_measuring());
}

#[test]
fn what_waits_while_batches_take_long_passes_with_the_commitment() {
    let mut rig = Rig::new("long");
    rig.shard.configure(config_of_two(2));
    rig.append(RATE_PER_S);
    rig.lend(2, 10_000, now_us() + HOUR_US);
    let group = rig.shard.groups.get_mut(&GROUP).unwrap();
    // It has been seen to take a microsecond.
    group.lending.window.ordered(0, 0);
    group.lending.window.committed(0, 1);
    rig.append(1);
    let before = rig.ordered();
    assert!(before > RATE_PER_S, "nothing has taken long yet");
    let ordered = now_us();
    while now_us() - ordered <= 2_000 * quorate_types::limits::LENT_DELAY_MS {}
    rig.append(20);
    let held = rig.ordered();
    assert!(held <= before + 1, "what is lent does not pass");
    assert!(
        rig.shard.groups[&GROUP].counters.totals.throttled_entries == 0,
        "nor is it refused"
    );
    let level = rig.shard.groups[&GROUP].replica.log().last_index();
    let ack = quorate_wire::peer::ChainAck {
        level,
        ..Default::default()
    };
    let envelope = quorate_wire::peer::Envelope {
        group_id: GROUP,
        epoch: 2,
        message: quorate_wire::peer::Message::ChainAck(ack),
    };
    rig.shard.peer_envelope(ServerId(2), envelope);
    rig.shard.flush();
    let now = now_us();
    let wake = rig.shard.groups.get_mut(&GROUP).unwrap().next_wake(now);
    assert!(wake.is_some_and(|at| at <= now + 1_000), "{wake:?} at {now}");
    rig.shard.with_group(GROUP, |_, _| {});
    rig.shard.flush();
    assert!(rig.ordered() > held, "{} of {held}", rig.ordered());
}
