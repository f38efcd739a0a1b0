//! Configurations that a group takes, and one that it refuses.

use quorate_group::{Event, Output, Report};
use quorate_types::ConfigDigest;
use quorate_types::control::ToCoordinator;

use crate::rig::{GROUP, ME, OTHER, Rig, config};

/// The group's message to the coordinator about its epoch.
fn applied(rig: &Rig) -> Vec<ToCoordinator> {
    let told = rig.out.list.iter().filter_map(|output| match output {
        Output::Coordinator(message) => Some(message.clone()),
        _ => None,
    });
    told.collect()
}

#[test]
fn another_configuration_of_the_same_epoch_is_refused_and_the_first_one_named() {
    let first = config(1, &[ME, OTHER]);
    let mut rig = Rig::new(first.clone());
    let own = ToCoordinator::Applied {
        group_id: GROUP,
        epoch: 1,
        digest: Some(ConfigDigest::of(&first)),
    };
    rig.messages();
    rig.step(Event::Configure(Box::new(first.clone())));
    assert_eq!(
        applied(&rig),
        std::slice::from_ref(&own),
        "a repetition is confirmed"
    );
    rig.messages();
    rig.step(Event::Configure(Box::new(config(1, &[OTHER, ME]))));
    assert_eq!(applied(&rig), [own]);
    let is_refusal = |output: &Output| matches!(output, Output::Report(Report::ConfigRefused { epoch: 1 }));
    assert!(rig.out.list.iter().any(is_refusal));
    assert_eq!(
        rig.group.replica().config(),
        Some(&first),
        "it stays the head of the first"
    );
}
