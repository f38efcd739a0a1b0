//! A server's reports as changes: the coordinator's copy follows, and a loss shows within a heartbeat.

use quorate_coordinator_core::engine::Heard;
use quorate_types::config::{GroupId, GroupState, Role, ServerId};
use quorate_types::control::{GroupReport, ReportChanges};
use quorate_types::limits::REPORTS_PER_HEARTBEAT_MAX;
use quorate_types::reports::ReportBook;
use uuid::Uuid;

const A: ServerId = ServerId(1);

fn report(number: u128, epoch: u64) -> GroupReport {
    GroupReport {
        group_id: group(number),
        epoch,
        role: Role::Head,
        state: GroupState::Active,
        last_index: 7,
        commit_offset: 9,
    }
}

fn group(number: u128) -> GroupId {
    GroupId(Uuid::from_u128(number))
}

/// A server that has just connected, with so many groups, and the coordinator.
struct Rig {
    book: ReportBook,
    heard: Heard,
    sent: u64,
}

impl Rig {
    fn new(groups: usize) -> Self {
        let mut book = ReportBook::default();
        (0..groups as u128).for_each(|number| book.note(report(number, 1)));
        book.connected();
        let (heard, sent) = (Heard::default(), 0);
        Self { book, heard, sent }
    }

    fn take(&mut self) -> (Vec<GroupReport>, ReportChanges) {
        self.sent += 1;
        self.book.take()
    }

    /// A heartbeat and its answer: the number of groups in it, and whether the sums agree.
    fn beat(&mut self) -> (usize, bool) {
        let (groups, changes) = self.take();
        let agrees = self.heard.take(A, &groups, Some(&changes));
        self.book.answered(self.sent, !agrees, self.sent);
        (groups.len(), agrees)
    }

    fn epoch_of(&self, number: u128) -> Option<u64> {
        self.heard
            .whole(A)
            .and_then(|reports| reports.epoch_of(group(number)))
    }
}

#[test]
fn all_groups_come_in_pieces_and_then_only_changed_ones() {
    let mut rig = Rig::new(2 * REPORTS_PER_HEARTBEAT_MAX + 5);
    assert_eq!(rig.beat(), (REPORTS_PER_HEARTBEAT_MAX, true));
    assert!(
        rig.heard.whole(A).is_none(),
        "groups that were not told yet are not missing"
    );
    assert_eq!(rig.beat(), (REPORTS_PER_HEARTBEAT_MAX, true));
    assert_eq!(rig.beat(), (5, true));
    assert_eq!((rig.epoch_of(0), rig.epoch_of(70_000)), (Some(1), None));
    rig.book.note(report(3, 1));
    assert_eq!(rig.beat(), (0, true), "the same report is no change");
    rig.book.note(report(3, 2));
    rig.book.forget(group(4));
    assert_eq!(rig.beat(), (1, true));
    assert_eq!((rig.epoch_of(3), rig.epoch_of(4)), (Some(2), None));
}

#[test]
fn a_lost_change_shows_at_the_next_heartbeat_and_everything_is_told_once_more() {
    let mut rig = Rig::new(10);
    rig.beat();
    rig.book.note(report(3, 2));
    let lost = rig.take();
    assert_eq!(lost.0.len(), 1);
    // Another heartbeat was under way when the first answer came: its answer means the same loss.
    let (groups, changes) = rig.take();
    assert!(!rig.heard.take(A, &groups, Some(&changes)));
    assert!(rig.heard.whole(A).is_none());
    let (later, later_changes) = rig.take();
    assert!(!rig.heard.take(A, &later, Some(&later_changes)));
    rig.book.answered(2, true, rig.sent);
    rig.book.answered(3, true, rig.sent);
    assert_eq!(rig.beat(), (10, true));
    assert_eq!(rig.epoch_of(3), Some(2));
    assert_eq!(rig.beat(), (0, true));
}

#[test]
fn a_group_that_goes_and_comes_between_two_heartbeats_is_told_once() {
    let mut rig = Rig::new(2);
    rig.beat();
    rig.book.note(report(0, 2));
    rig.book.forget(group(0));
    rig.book.note(report(0, 3));
    assert_eq!(rig.beat(), (1, true));
    assert_eq!(rig.epoch_of(0), Some(3));
}

#[test]
fn a_server_that_tells_all_each_time_is_taken_at_its_word() {
    let mut heard = Heard::default();
    assert!(heard.take(A, &[report(1, 1), report(2, 1)], None));
    assert!(heard.take(A, &[report(2, 2)], None));
    let reports = heard.whole(A).expect("it told all");
    assert_eq!(
        (reports.epoch_of(group(1)), reports.epoch_of(group(2))),
        (None, Some(2))
    );
    heard.forget(A);
    assert!(heard.whole(A).is_none());
}

/// Servers and coordinators of different releases compare it.
#[test]
fn the_digest_of_a_report_never_changes() {
    assert_eq!(report(0x0123_4567_89ab_cdef, 5).digest(), DIGEST);
}

const DIGEST: u64 = 802_441_454_675_349_078;
