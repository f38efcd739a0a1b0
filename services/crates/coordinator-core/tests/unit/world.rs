//! Drives the state machine without sockets or sleeping; every step is validated.

use quorate_coordinator_core::command::{Command, Effect, JoinTokenTerms, Proof, Registration, Reply};
use quorate_coordinator_core::command::{Headroom, PlacementPolicy, Relief, Replacements};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::{CoordinatorState, apply};
use quorate_coordinator_core::state::{Group, GroupStatus};
use quorate_placement::{Choice, Profile};
use quorate_types::control::{HeldGroup, RefuseCode, ToServer};
use quorate_types::cost::ResourceVector;
use quorate_types::{Durability, GroupConfig, GroupId, Room, ServerId, Sla};
use uuid::Uuid;

pub struct World {
    pub state: CoordinatorState,
    pub now_ms: u64,
    /// Everything that was applied, for replays.
    pub history: Vec<(u64, Command)>,
}

pub fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

pub fn server(n: u32) -> ServerId {
    ServerId(n)
}

pub fn sla(durability: Durability, degree: u8, rate_per_s: u64) -> Sla {
    Sla {
        read_rate_per_s: 0,
        durability,
        replication_degree: degree,
        min_replicas: None,
        request_size_bytes: 64,
        rate_per_s,
        region: "local".into(),
        retention_bytes: 1 << 20,
        retention_age_s: None,
        latency: Default::default(),
    }
}

pub fn registration(proof: Proof, n: u32, incarnation: &str) -> Registration {
    Registration {
        proof,
        name: format!("s{n}"),
        address: format!("127.0.0.1:{}", 7_000 + n),
        incarnation: incarnation.into(),
        capacity: ResourceVector::new(2.0, 1.25e9, 20_000.0),
        room: Room::default(),
        failure_domain: None,
        region: "local".into(),
        held: Vec::new(),
        previous_incarnations: Vec::new(),
        version: "0.1.0".into(),
        machine: None,
    }
}

pub fn held(n: u128, durability: Durability) -> HeldGroup {
    HeldGroup {
        group_id: group(n),
        epoch: 1,
        durability,
        last_index: 7,
        committed_epoch: 0,
        committed_index: 0,
        damaged: false,
    }
}

pub fn credential(n: u32) -> Proof {
    Proof::Credential(format!("credential-{n}"))
}

impl World {
    /// `servers` servers named s1, s2, …, all alive, in incarnation "i1".
    pub fn new(servers: u32) -> Self {
        let mut world = Self {
            state: CoordinatorState::new(Profile::default_profile()),
            now_ms: 1_000_000,
            history: Vec::new(),
        };
        for n in 1..=servers {
            assert_eq!(world.join(n, "i1"), Ok(server(n)));
        }
        world
    }

    /// With today's policy: servers chosen by shape, and room for one failure domain.
    pub fn with_headroom(servers: u32) -> Self {
        let mut world = Self::new(0);
        world.apply(Command::UsePlacement {
            policy: PlacementPolicy {
                choice: Choice::Shape,
                headroom: Headroom::OneDomain,
                replacements: Replacements::HeaviestFirst,
                relief: Relief::AtOnce,
                is_spread: true,
                ..PlacementPolicy::default()
            },
        });
        for n in 1..=servers {
            assert_eq!(world.join(n, "i1"), Ok(server(n)));
        }
        world
    }

    pub fn apply(&mut self, command: Command) -> Vec<Effect> {
        self.now_ms += 1;
        let effects = apply(&mut self.state, self.now_ms, &command);
        if let Err(problem) = self.state.validate() {
            panic!("after {command:?}: {problem}");
        }
        self.history.push((self.now_ms, command));
        effects
    }

    pub fn issue_token(&mut self, digest: &str, ttl_ms: u64, name: Option<&str>) {
        let terms = JoinTokenTerms {
            expires_at_ms: self.now_ms + ttl_ms,
            name: name.map(Into::into),
            auxiliary: false,
        };
        let effects = self.apply(Command::IssueJoinToken {
            digest: digest.into(),
            token: terms,
        });
        assert_eq!(effects, [Effect::Reply(Reply::TokenIssued)]);
    }

    pub fn join(&mut self, n: u32, incarnation: &str) -> Result<ServerId, RefuseCode> {
        let digest = format!("token-{n}-{incarnation}");
        self.issue_token(&digest, 60_000, None);
        self.join_with(&digest, n, incarnation)
    }

    pub fn join_with(&mut self, digest: &str, n: u32, incarnation: &str) -> Result<ServerId, RefuseCode> {
        let proof = Proof::JoinToken {
            digest: digest.into(),
            credential_digest: format!("credential-{n}"),
        };
        registered(&self.register(registration(proof, n, incarnation)))
    }

    pub fn register(&mut self, registration: Registration) -> Vec<Effect> {
        self.apply(Command::Register(Box::new(registration)))
    }

    /// Comes back with the data on its disk.
    pub fn come_back(&mut self, n: u32, incarnation: &str, held: Vec<HeldGroup>) -> Vec<Effect> {
        self.register(Registration {
            held,
            ..registration(credential(n), n, incarnation)
        })
    }

    pub fn fail(&mut self, servers: &[u32]) -> Vec<Effect> {
        self.apply(Command::ServersFailed {
            servers: servers.iter().copied().map(ServerId).collect(),
        })
    }

    pub fn admit(&mut self, n: u128, sla: Sla) -> Vec<Effect> {
        self.apply(Command::Admit {
            group_id: group(n),
            project_id: Uuid::nil(),
            sla,
        })
    }

    /// Admits a group and has every replica apply its configuration.
    pub fn active(&mut self, n: u128, durability: Durability, degree: u8) {
        let effects = self.admit(n, sla(durability, degree, 1_000));
        assert!(
            effects.contains(&Effect::Reply(Reply::Admitted { created: true })),
            "{effects:?}"
        );
        self.apply_all(n);
        assert_eq!(self.group(n).status, GroupStatus::Active);
    }

    /// Every replica reports that it applied the present epoch.
    pub fn apply_all(&mut self, n: u128) {
        let (chain, epoch) = (self.group(n).chain.clone(), self.group(n).epoch);
        for server in chain {
            self.apply(Command::Applied {
                server,
                group_id: group(n),
                epoch,
            });
        }
    }

    /// The tail reports, in the given epoch, that the learner has caught up.
    pub fn caught_up(&mut self, n: u128, epoch: u64) -> Vec<Effect> {
        let (from, learner) = (
            *self.group(n).chain.last().unwrap(),
            self.group(n).learner.unwrap(),
        );
        self.apply(Command::LearnerCaughtUp {
            server: from,
            group_id: group(n),
            epoch,
            learner,
        })
    }

    pub fn dropped(&mut self, n: u32, group_n: u128) {
        self.apply(Command::Dropped {
            server: server(n),
            group_id: group(group_n),
        });
    }

    pub fn delete(&mut self, n: u128) -> Vec<Effect> {
        self.apply(Command::Delete { group_id: group(n) })
    }

    pub fn group(&self, n: u128) -> &Group {
        &self.state.groups[&group(n)]
    }

    /// Chain, learner, epoch, status.
    pub fn shape(&self, n: u128) -> (Vec<u32>, Option<u32>, u64, GroupStatus) {
        let group = self.group(n);
        (
            group.chain.iter().map(|s| s.0).collect(),
            group.learner.map(|s| s.0),
            group.epoch,
            group.status,
        )
    }

    pub fn kinds(&self) -> Vec<EventKind> {
        self.state
            .events
            .after(0, usize::MAX)
            .map(|event| event.kind)
            .collect()
    }

    pub fn statuses(&self, n: u128) -> Vec<GroupStatus> {
        let events = self.state.events.after(0, usize::MAX);
        events
            .filter(|e| e.group_id == Some(group(n)))
            .filter_map(|e| e.status)
            .collect()
    }
}

pub fn registered(effects: &[Effect]) -> Result<ServerId, RefuseCode> {
    match effects.first() {
        Some(Effect::Accept { server, .. }) => Ok(*server),
        Some(Effect::Refuse { code, .. }) => Err(*code),
        other => panic!("registration is accepted or refused first: {other:?}"),
    }
}

/// The configurations sent, by server.
pub fn configures(effects: &[Effect]) -> Vec<(u32, GroupConfig)> {
    let configure = |effect: &Effect| match effect {
        Effect::Send {
            server,
            message: ToServer::Configure { config },
        } => Some((server.0, config.clone())),
        _ => None,
    };
    effects.iter().filter_map(configure).collect()
}

/// The drops sent: server, group, epoch.
pub fn drops(effects: &[Effect]) -> Vec<(u32, GroupId, u64)> {
    let drop = |effect: &Effect| match effect {
        Effect::Send {
            server,
            message: ToServer::Drop { group_id, epoch },
        } => Some((server.0, *group_id, *epoch)),
        _ => None,
    };
    effects.iter().filter_map(drop).collect()
}

/// The only reply.
pub fn reply(effects: &[Effect]) -> Reply {
    let mut replies = effects.iter().filter_map(|effect| match effect {
        Effect::Reply(reply) => Some(reply.clone()),
        _ => None,
    });
    let only = replies.next().expect("a reply");
    assert!(replies.next().is_none());
    only
}

pub fn conflict(effects: &[Effect]) -> &'static str {
    match reply(effects) {
        Reply::Conflict { code, .. } => code,
        other => panic!("not a conflict: {other:?}"),
    }
}
