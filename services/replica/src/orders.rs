//! Orders of the coordinator about groups, on their way to the shards. Each waits until its place in the coordinator's
//! log is on disk, and those behind it wait too. Heartbeats do not: a server whose disk hangs says so, and is not silent.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use quorate_types::control::ToServer;
use quorate_types::{Epoch, GroupId};
use tokio::sync::mpsc;
use tokio::task::spawn_local;

use crate::place_keeper::Written;

/// Orders wait here whatever becomes of the connection on which they came.
///
/// Unbounded, but bounded by its use: the coordinator repeats orders that it does not see obeyed, and one that waits
/// already is not kept twice. So there are a few for each group and epoch.
pub struct Orders {
    inbox: mpsc::UnboundedSender<(Option<Written>, ToServer)>,
    waiting: Rc<RefCell<BTreeSet<Key>>>,
}

/// The kind of an order, its group and epoch.
type Key = (u8, GroupId, Epoch);

impl Orders {
    /// `obey` gets the orders, one after the other.
    pub fn start(obey: impl Fn(ToServer) + 'static) -> Self {
        let (inbox, mut orders) = mpsc::unbounded_channel::<(Option<Written>, ToServer)>();
        let waiting = Rc::new(RefCell::new(BTreeSet::new()));
        let taken = waiting.clone();
        spawn_local(async move {
            while let Some((written, order)) = orders.recv().await {
                if let Some(written) = written {
                    let _stopped = written.await.is_err();
                }
                if let Some(key) = key_of(&order) {
                    taken.borrow_mut().remove(&key);
                }
                obey(order);
            }
        });
        Self { inbox, waiting }
    }

    /// `written`: of the order's place.
    pub fn give(&self, written: Option<Written>, order: ToServer) {
        if let ToServer::Configure { config } = &order {
            // A loss behind it is another one.
            self.waiting.borrow_mut().remove(&lost(config.group_id));
        }
        let is_new = key_of(&order).is_none_or(|key| self.waiting.borrow_mut().insert(key));
        if is_new {
            let _stopped = self.inbox.send((written, order)).is_err();
        }
    }
}

/// The key of an order that the coordinator repeats.
fn key_of(order: &ToServer) -> Option<Key> {
    match order {
        ToServer::Configure { config } => Some((0, config.group_id, config.epoch)),
        ToServer::Drop { group_id, epoch } => Some((1, *group_id, *epoch)),
        ToServer::Quarantined { group_id, epoch } => Some((2, *group_id, *epoch)),
        ToServer::Lost { group_id } => Some(lost(*group_id)),
        _ => None,
    }
}

fn lost(group_id: GroupId) -> Key {
    (3, group_id, 0)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    use quorate_group::HangWatch;
    use quorate_types::cost::{Budget, EntryCost};
    use quorate_types::limits::HANGING_MS;
    use quorate_types::{Access, Durability, GroupConfig, Place, RunId};
    use tokio::task::LocalSet;
    use uuid::Uuid;

    use super::*;
    use crate::place_keeper::PlaceKeeper;

    fn place(position: u64) -> Option<Place> {
        let run = RunId(1);
        Some(Place { run, position })
    }

    fn drop_of(group: u128) -> ToServer {
        let group_id = GroupId(Uuid::from_u128(group));
        ToServer::Drop { group_id, epoch: 1 }
    }

    /// A keeper whose writes begin as told and last until they are let go on.
    fn hanging() -> (PlaceKeeper, Receiver<u64>, Sender<()>) {
        let (begun, writes) = channel();
        let (goes_on, gate) = channel::<()>();
        let keeper = PlaceKeeper::writing(None, move |place| {
            begun.send(place.position).unwrap();
            let _let_go_for_good = gate.recv().is_err();
            Ok(())
        });
        (keeper.unwrap(), writes, goes_on)
    }

    async fn until(obeyed: &Rc<RefCell<Vec<ToServer>>>, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while obeyed.borrow().len() < count {
            assert!(Instant::now() < deadline, "{:?}", obeyed.borrow());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn orders_wait_for_their_places_in_order_and_nothing_else_waits_for_a_disk_that_hangs() {
        let (mut keeper, writes, goes_on) = hanging();
        let obeyed = Rc::new(RefCell::new(Vec::new()));
        let sink = obeyed.clone();
        let local = LocalSet::new();
        let talk = async {
            let orders = Orders::start(move |order| sink.borrow_mut().push(order));
            let group_id = GroupId(Uuid::from_u128(1));
            let behind = ToServer::Quarantined { group_id, epoch: 1 };
            let mut give = |position, order: ToServer| {
                let written = keeper.note(place(position), &order);
                orders.give(written, order);
            };
            give(1, drop_of(1));
            assert_eq!(writes.recv().unwrap(), 1);
            give(1, drop_of(2));
            give(2, behind.clone());
            give(3, drop_of(3));
            // An answer is read, and a heartbeat sent, meanwhile.
            let answer = ToServer::HeartbeatAck {
                seq: 1,
                repeat: false,
                unix_ms: None,
            };
            assert!(keeper.note(place(4), &answer).is_none());
            assert_eq!(keeper.known(), place(4));
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(*obeyed.borrow(), []);
            goes_on.send(()).unwrap();
            until(&obeyed, 3).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(*obeyed.borrow(), [drop_of(1), drop_of(2), behind]);
            assert_eq!(writes.recv().unwrap(), 3, "one write for all that waited");
            goes_on.send(()).unwrap();
            until(&obeyed, 4).await;
            assert_eq!(obeyed.borrow()[3], drop_of(3));
        };
        local.run_until(talk).await;
    }

    #[tokio::test]
    async fn an_order_that_waits_is_not_kept_twice() {
        let (mut keeper, writes, goes_on) = hanging();
        let obeyed = Rc::new(RefCell::new(Vec::new()));
        let sink = obeyed.clone();
        let talk = async {
            let orders = Orders::start(move |order| sink.borrow_mut().push(order));
            for (position, group) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
                let order = drop_of(group);
                orders.give(keeper.note(place(position), &order), order);
                if position == 1 {
                    assert_eq!(writes.recv().unwrap(), 1);
                }
            }
            drop(goes_on);
            until(&obeyed, 2).await;
            // The next time it is another order.
            orders.give(None, drop_of(1));
            until(&obeyed, 3).await;
            assert_eq!(*obeyed.borrow(), [drop_of(1), drop_of(2), drop_of(1)]);
        };
        LocalSet::new().run_until(talk).await;
    }

    #[tokio::test]
    async fn a_group_that_is_lost_again_is_told_so() {
        let group_id = GroupId(Uuid::from_u128(1));
        let free = EntryCost {
            fixed_milli: [0; 3],
            per_byte_milli: [0; 3],
        };
        let configure = ToServer::Configure {
            config: GroupConfig {
                group_id,
                epoch: 7,
                durability: Durability::Persistent,
                replication_degree: 1,
                min_replicas: 1,
                replicas: Vec::new(),
                learners: Vec::new(),
                budget: Budget::for_rate(1_000, 1, free),
                retention_bytes: 1,
                retention_age_s: None,
                beginning: None,
                access: Access::Full,
                layout: quorate_types::Layout::default(),
            },
        };
        let obeyed = Rc::new(RefCell::new(Vec::new()));
        let sink = obeyed.clone();
        let talk = async {
            let orders = Orders::start(move |order| sink.borrow_mut().push(order));
            let lost = ToServer::Lost { group_id };
            for order in [&lost, &lost, &configure, &lost] {
                orders.give(None, order.clone());
            }
            until(&obeyed, 3).await;
            assert_eq!(*obeyed.borrow(), [lost.clone(), configure, lost]);
        };
        LocalSet::new().run_until(talk).await;
    }

    #[test]
    fn a_credential_waits_for_the_place_of_its_welcome() {
        let (mut keeper, writes, goes_on) = hanging();
        let welcome = |credential: Option<String>| {
            let json = serde_json::json!({
                "type": "welcome", "server_id": 1, "credential": credential, "heartbeat_ms": 1, "lease_ms": 6,
                "client_keys": {}, "peer_keys": {}, "peer_token": "",
            });
            serde_json::from_value::<ToServer>(json).unwrap()
        };
        let mut written = keeper
            .note(place(1), &welcome(Some("new".into())))
            .expect("a newcomer waits");
        assert_eq!(writes.recv().unwrap(), 1);
        assert!(written.try_recv().is_err());
        goes_on.send(()).unwrap();
        written.blocking_recv().unwrap();
        assert!(
            keeper.note(place(2), &welcome(None)).is_none(),
            "an older place says enough"
        );
        goes_on.send(()).unwrap();
    }

    #[test]
    fn a_write_of_a_place_that_hangs_is_seen_by_the_watch() {
        let (mut keeper, writes, goes_on) = hanging();
        let mut watch = HangWatch::default();
        let mark = keeper.watch();
        assert_eq!(mark.mark(), None);
        let _written = keeper.note(place(1), &drop_of(1));
        writes.recv().unwrap();
        for sample in 0..=2 * HANGING_MS / 50 {
            watch.sample(sample * 50_000, [mark.mark()]);
        }
        assert!(watch.hung_ms() >= HANGING_MS, "{}", watch.hung_ms());
        // The next write is another one.
        let _written = keeper.note(place(2), &drop_of(2));
        goes_on.send(()).unwrap();
        writes.recv().unwrap();
        watch.sample(10_000_000, [mark.mark()]);
        assert_eq!(watch.hung_ms(), 0);
        goes_on.send(()).unwrap();
    }
}
