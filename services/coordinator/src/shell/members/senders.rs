//! The connections on which other members send, and the process at the other end of each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use quorate_quorum::MemberId;
use tokio::sync::oneshot;

/// Former processes of a member that are remembered. More than one runs only by mistake.
const FORMER_MAX: usize = 8;

/// A member has one process at a time, and the process one connection.
#[derive(Debug, Default)]
pub struct Senders(Mutex<BTreeMap<MemberId, Sender>>);

#[derive(Debug)]
struct Sender {
    process: String,
    former: VecDeque<String>,
    /// Dropping it ends the connection, which may look alive for long after its other end has gone.
    _is_newest: Option<oneshot::Sender<()>>,
}

impl Senders {
    /// Refuses a process after which another one of the same member has come.
    pub fn check(&self, member: MemberId, process: &str) -> Result<(), String> {
        let senders = self.0.lock().expect("no holder of the lock panics");
        let is_former = |sender: &Sender| sender.former.iter().any(|former| former == process);
        if senders.get(&member).is_some_and(is_former) {
            return Err(format!(
                "another process with the number of member {member} has connected since: one of their two folders is a copy. \
                 Stop the one whose folder is older, and let a new coordinator --join with an empty folder"
            ));
        }
        Ok(())
    }

    /// The newest connection of the member's newest process. The receiver ends with it.
    pub fn connected(&self, member: MemberId, process: String) -> oneshot::Receiver<()> {
        let (is_newest, superseded) = oneshot::channel();
        let mut senders = self.0.lock().expect("no holder of the lock panics");
        let sender = senders.entry(member).or_insert_with(|| Sender {
            process: process.clone(),
            former: VecDeque::new(),
            _is_newest: None,
        });
        if sender.process != process {
            let former = std::mem::replace(&mut sender.process, process);
            sender.former.push_back(former);
            if sender.former.len() > FORMER_MAX {
                sender.former.pop_front();
            }
        }
        sender._is_newest = Some(is_newest);
        superseded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_followed_by_another_is_refused() {
        let (senders, member) = (Senders::default(), MemberId(7));
        let mut first = senders.connected(member, "a".into());
        let mut again = senders.connected(member, "a".into());
        assert!(first.try_recv() == Err(oneshot::error::TryRecvError::Closed));
        assert!(again.try_recv() == Err(oneshot::error::TryRecvError::Empty));
        assert_eq!(senders.check(member, "b"), Ok(()), "the member was restarted");
        let _newest = senders.connected(member, "b".into());
        assert_eq!(senders.check(member, "b"), Ok(()));
        assert!(senders.check(member, "a").unwrap_err().contains("is a copy"));
        assert_eq!(senders.check(MemberId(8), "a"), Ok(()));
        // No more of them are remembered than the bound.
        for n in 0..=FORMER_MAX {
            let _newest = senders.connected(member, format!("c{n}"));
        }
        assert_eq!(senders.check(member, "a"), Ok(()));
    }
}
