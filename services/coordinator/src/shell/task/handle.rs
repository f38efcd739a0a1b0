//! How connections, calls and files reach the task that owns the engine.

use std::net::IpAddr;
use std::time::Duration;

use quorate_guarantees::Guarantee;
use quorate_quorum::{Change, MemberId, Refused};
use quorate_types::ServerId;
use quorate_types::control::{Placed, Register, ToCoordinator};
use quorate_types::sla::Quote;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use quorate_coordinator_core::command::{Command, QuoteRequest, Reply};
use quorate_coordinator_core::engine::RollCallView;
use quorate_coordinator_core::ids::ConnectionId;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_coordinator_core::view::{FleetVersionView, QuorumView, ServerView};

/// Messages to one connection; dropping it closes the connection.
pub type ConnectionOutbox = mpsc::Sender<Placed>;

/// A report, and the way back to its server while the connection lasts.
#[derive(Debug)]
pub struct Reported<T> {
    pub server: ServerId,
    pub outbox: mpsc::WeakSender<Placed>,
    pub report: T,
}

/// Reads the state, or learns why it cannot be read here.
pub type Look = dyn FnOnce(Result<&CoordinatorState, Unavailable>) + Send;

/// A question to the state, answered with all that was agreed before it.
pub enum Asked {
    Look(Box<Look>),
    Quote {
        request: Box<QuoteRequest>,
        answer: Answer<Quote>,
    },
    /// A change of a project's guarantee on trial.
    QuoteGuarantee {
        project_id: Uuid,
        guarantee: Box<Guarantee>,
        answer: Answer<Reply>,
    },
    /// All servers, or one of them.
    Servers {
        only: Option<ServerId>,
        answer: Answer<Vec<ServerView>>,
    },
    FleetVersion(Answer<FleetVersionView>),
}

/// An operator's change of the members, or of their leader.
pub enum QuorumChange {
    Members(Change),
    /// None: the member that lacks least is to lead.
    StepDown {
        to: Option<MemberId>,
    },
}

pub type Answer<T> = oneshot::Sender<Result<T, Unavailable>>;

/// An input of the task, from outside.
pub enum TaskInput {
    Register {
        connection: ConnectionId,
        from: IpAddr,
        outbox: ConnectionOutbox,
        register: Box<Register>,
        /// The certificate that the server showed on its connection. It is the authority's; whose it is remains to be
        /// checked.
        certificate: Option<CertificateDer<'static>>,
    },
    /// The file with the keys that sign clients' tokens has changed.
    ClientKeys(Value),
    Message {
        connection: ConnectionId,
        message: ToCoordinator,
    },
    Closed {
        connection: ConnectionId,
    },
    Command {
        command: Command,
        reply: Answer<Reply>,
    },
    Ask(Asked),
    /// The fleet's version is raised to the newest, if everything can read it.
    RaiseFleetVersion {
        reply: Answer<Reply>,
    },
    ChangeQuorum {
        change: QuorumChange,
        reply: Answer<Result<(), Refused>>,
    },
    /// An operator ends the roll call.
    EndRollCall,
}

/// No answer from this coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Nothing was done.
    #[error("another coordinator leads")]
    NotLeader {
        /// Callers reach it there. None: nobody is known to lead, or where.
        leader: Option<String>,
    },
    /// It is stopping, decides no more, or is so far behind that it is better to ask later.
    #[error("the coordinator is stopping, overloaded, or has ceased to lead")]
    Unknown,
}

/// Access for calls of the API.
#[derive(Clone)]
pub struct Handle {
    pub inputs: mpsc::Sender<TaskInput>,
    /// The last event's number, as agreed.
    pub events: watch::Receiver<u64>,
    /// The member's part in the quorum, a tick ago at most. It is there while nobody leads, too.
    pub quorum: watch::Receiver<Option<QuorumView>>,
    /// The roll call, while it runs.
    pub roll_call: watch::Receiver<Option<RollCallView>>,
}

const CALL_TIMEOUT: Duration = Duration::from_secs(10);

impl Handle {
    /// Applies a command and answers when it is agreed.
    pub async fn command(&self, command: Command) -> Result<Reply, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.ask(TaskInput::Command { command, reply }, answer).await
    }

    /// Reads the state, all of which is agreed.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CoordinatorState) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let look = Asked::Look(Box::new(move |state| drop(reply.send(state.map(look)))));
        self.ask(TaskInput::Ask(look), answer).await
    }

    /// A dry run of an admission, or of a change of a group.
    pub async fn quote(&self, request: QuoteRequest) -> Result<Quote, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let quote = Asked::Quote {
            request: Box::new(request),
            answer: reply,
        };
        self.ask(TaskInput::Ask(quote), answer).await
    }

    /// A dry run of a change of a project's guarantee: the answer that it would get.
    pub async fn quote_guarantee(
        &self,
        project_id: Uuid,
        guarantee: Guarantee,
    ) -> Result<Reply, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let quote = Asked::QuoteGuarantee {
            project_id,
            guarantee: Box::new(guarantee),
            answer: reply,
        };
        self.ask(TaskInput::Ask(quote), answer).await
    }

    /// All servers, or one of them.
    pub async fn servers(&self, only: Option<ServerId>) -> Result<Vec<ServerView>, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let servers = Asked::Servers { only, answer: reply };
        self.ask(TaskInput::Ask(servers), answer).await
    }

    pub async fn fleet_version(&self) -> Result<FleetVersionView, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.ask(TaskInput::Ask(Asked::FleetVersion(reply)), answer).await
    }

    /// Answers when the raise is agreed, or why it is refused.
    pub async fn raise_fleet_version(&self) -> Result<Reply, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.ask(TaskInput::RaiseFleetVersion { reply }, answer).await
    }

    /// Answers when the change is agreed, or the handing over has begun.
    pub async fn change_quorum(&self, change: QuorumChange) -> Result<Result<(), Refused>, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.ask(TaskInput::ChangeQuorum { change, reply }, answer).await
    }

    /// The operator answers for servers that the roll call misses.
    pub async fn end_roll_call(&self) -> Result<(), Unavailable> {
        (self.inputs.send(TaskInput::EndRollCall).await).map_err(|_| Unavailable::Unknown)
    }

    async fn ask<T>(
        &self,
        input: TaskInput,
        answer: oneshot::Receiver<Result<T, Unavailable>>,
    ) -> Result<T, Unavailable> {
        let asked = async {
            self.inputs.send(input).await.map_err(|_| Unavailable::Unknown)?;
            answer.await.map_err(|_| Unavailable::Unknown)?
        };
        tokio::time::timeout(CALL_TIMEOUT, asked)
            .await
            .map_err(|_| Unavailable::Unknown)?
    }
}
