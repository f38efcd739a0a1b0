//! A member's part in the quorum, as the API shows it.

use quorate_quorum::{MemberId, RoleView, View};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuorumView {
    /// The member that answers.
    pub member: String,
    /// `leader` or `follower`.
    pub role: &'static str,
    pub term: u64,
    /// None: nobody is known to lead.
    pub leader: Option<String>,
    /// The end of its log.
    pub last_position: u64,
    pub last_term: u64,
    /// The end of what is agreed, as far as it knows.
    pub agreed_position: u64,
    /// The end of what its disk has.
    pub durable_position: u64,
    pub members: Vec<MemberView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberView {
    pub member: String,
    /// Other coordinators reach it there. Empty: it has told none.
    pub address: String,
    /// Servers and callers reach it there. Empty: it has told none.
    pub control: String,
    pub http: String,
    /// How the one that answers sends to it: `tcp` or `ofi`. None: there is no link at present, or it is the same.
    pub transport: Option<&'static str>,
    /// Without a vote it gets all entries, and counts for nothing.
    pub votes: bool,
    /// The end of the leader's log that its disk has. None: another member answers than the leader.
    pub durable_position: Option<u64>,
    /// Milliseconds since the leader heard it. None: another member answers than the leader, or it is the leader.
    pub silent_ms: Option<u64>,
}

impl QuorumView {
    /// Adds a member's addresses for servers and callers.
    pub fn tell_contact(&mut self, id: MemberId, control: &str, http: &str) {
        if let Some(member) = self.member(id) {
            (member.control, member.http) = (control.to_string(), http.to_string());
        }
    }

    /// Adds how messages go to a member.
    pub fn tell_transport(&mut self, id: MemberId, transport: &'static str) {
        if let Some(member) = self.member(id) {
            member.transport = Some(transport);
        }
    }

    fn member(&mut self, id: MemberId) -> Option<&mut MemberView> {
        let id = id.to_string();
        self.members.iter_mut().find(|member| member.member == id)
    }

    pub fn of(view: &View) -> Self {
        let (role, term, leader) = match view.role {
            RoleView::Leader { term } => ("leader", term, Some(view.own)),
            RoleView::Follower { term, leader } => ("follower", term, leader),
        };
        let members = view.members.iter().map(|(id, member)| {
            let seen = view
                .others
                .iter()
                .find(|(other, _)| *other == id)
                .map(|(_, seen)| seen);
            let own = (id == view.own && role == "leader").then_some(view.durable.0);
            MemberView {
                member: id.to_string(),
                address: member.address.clone(),
                control: String::new(),
                http: String::new(),
                transport: None,
                votes: member.votes,
                durable_position: seen.map(|seen| seen.matched.0).or(own),
                silent_ms: seen.map(|seen| seen.silent_ms),
            }
        });
        Self {
            member: view.own.to_string(),
            role,
            term: term.0,
            leader: leader.as_ref().map(MemberId::to_string),
            last_position: view.last.position.0,
            last_term: view.last.term.0,
            agreed_position: view.committed.0,
            durable_position: view.durable.0,
            members: members.collect(),
        }
    }
}
