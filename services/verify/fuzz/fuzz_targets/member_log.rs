//! A coordinator's log, with any records under right checksums: no record causes a panic. A log that is read makes a member.

#![cfg_attr(fuzzing, no_main)]

use quorate_coordinator_core::log::{Contents, header, scan};
use quorate_quorum::{Replica, Settings};
use quorate_record_file::encode;

const SETTINGS: Settings = Settings {
    heartbeat_ms: 50,
    election_ms: 250,
    seed: 1,
    append_bytes: 1 << 20,
    kept_bytes: 0,
};

quorate_fuzz::program!(run);

/// Lines are records.
fn run(data: &[u8]) {
    let mut file = header().to_vec();
    for line in data.split(|byte| *byte == b'\n') {
        let text: Vec<u8> = line.iter().map(|byte| (*byte).max(b' ')).collect();
        file.extend(encode(&text));
    }
    let Ok(scanned) = scan(&file) else {
        return;
    };
    if let Contents::Member(disk) = scanned.contents {
        let replica = Replica::new(disk.base.member, disk.to_quorum(), SETTINGS, 0);
        assert_eq!(replica.view(0).last, disk.last());
    }
}
