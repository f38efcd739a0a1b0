//! `backup` and `restore`: a copy of a coordinator's log that is kept while it runs, and put in place where its disk is lost.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_types::FleetId;

use crate::exit::Failure;
use quorate_coordinator_core::coordinator::alone;
use quorate_coordinator_core::log::{Contents, MemberDisk, scan};

const LOG: &str = "coordinator.log";
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Copies the log into the folder, and goes on with what is appended to it. `once`: not.
pub async fn backup(data_dir: &Path, to: &Path, once: bool) -> Result<(), Failure> {
    let source = data_dir.join(LOG);
    if !source.exists() {
        let message = format!("--data-dir {}: there is no {LOG}", data_dir.display());
        return Err(Failure::configuration(message));
    }
    let made = fs::create_dir_all(to).and_then(|()| File::create(to.join("lock")));
    let lock = made.map_err(|e| unusable(to, &e))?;
    if lock.try_lock().is_err() {
        let message = format!("--to {}: another backup writes there", to.display());
        return Err(Failure::configuration(message));
    }
    let mut copying = Copying::begin(source, to.join(LOG))?;
    println!("backup ready: {} bytes", copying.copied);
    if once {
        return Ok(());
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        copying.go_on()?;
    }
}

/// Puts a copy in place as the log of a coordinator that is to start.
pub fn restore(from: &Path, data_dir: &Path) -> Result<(), Failure> {
    let (source, target) = (from.join(LOG), data_dir.join(LOG));
    if target.exists() {
        let message = format!(
            "{} is there: nothing was changed. Move it away if it is lost or damaged",
            target.display()
        );
        return Err(Failure::configuration(message));
    }
    let bytes = fs::read(&source).map_err(|e| unusable(&source, &e))?;
    let (disk, whole) = member(&source, &bytes)?;
    let known = alone(&disk, FleetId(rand::random())).map_err(|problem| damaged(&source, &problem))?;
    fs::create_dir_all(data_dir)
        .and_then(|()| put(&target, &bytes[..whole]))
        .map_err(|e| unusable(&target, &e))?;
    println!(
        "{} servers and {} groups, as of entry {}. Start the coordinator: it hears its servers first, and ends with exit \
         code 6 if they know of more",
        known.state.servers.len(),
        known.state.groups.len(),
        known.base.point.position.0
    );
    Ok(())
}

/// The copy of a file that is appended to, and replaced by another one now and then.
struct Copying {
    source: PathBuf,
    target: PathBuf,
    input: File,
    output: File,
    copied: u64,
}

impl Copying {
    /// Copies all that there is. A damaged log takes no sound copy's place.
    fn begin(source: PathBuf, target: PathBuf) -> Result<Self, Failure> {
        let input = File::open(&source).map_err(|e| unusable(&source, &e))?;
        let mut bytes = Vec::new();
        read_behind(&input, &mut bytes, 0).map_err(|e| unusable(&source, &e))?;
        let (_, whole) = member(&source, &bytes)?;
        let placed =
            put(&target, &bytes[..whole]).and_then(|()| OpenOptions::new().append(true).open(&target));
        let output = placed.map_err(|e| unusable(&target, &e))?;
        Ok(Self {
            source,
            target,
            input,
            output,
            copied: whole as u64,
        })
    }

    /// Copies what was appended since. Another file is in place after a snapshot: it is copied whole.
    fn go_on(&mut self) -> Result<(), Failure> {
        let inode = |file: io::Result<fs::Metadata>| file.map(|found| found.ino());
        let present = inode(fs::metadata(&self.source)).map_err(|e| unusable(&self.source, &e))?;
        if inode(self.input.metadata()).is_ok_and(|known| known != present) {
            *self = Self::begin(self.source.clone(), self.target.clone())?;
            return Ok(());
        }
        let mut bytes = Vec::new();
        read_behind(&self.input, &mut bytes, self.copied).map_err(|e| unusable(&self.source, &e))?;
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self
            .output
            .write_all(&bytes)
            .and_then(|()| self.output.sync_data());
        written.map_err(|e| unusable(&self.target, &e))?;
        self.copied += bytes.len() as u64;
        Ok(())
    }
}

fn read_behind(file: &File, bytes: &mut Vec<u8>, offset: u64) -> io::Result<()> {
    let end = file.metadata()?.len();
    bytes.resize(
        usize::try_from(end.saturating_sub(offset)).expect("a log fits memory"),
        0,
    );
    file.read_exact_at(bytes, offset)
}

/// The log of a member, and the bytes of its whole records.
fn member(path: &Path, bytes: &[u8]) -> Result<(MemberDisk, usize), Failure> {
    let scanned =
        scan(bytes).map_err(|(offset, problem)| damaged(path, &format!("byte {offset}: {problem}")))?;
    let Contents::Member(disk) = scanned.contents else {
        return Err(damaged(
            path,
            "it has no beginning of this release: start the coordinator on it first",
        ));
    };
    Ok((disk, usize::try_from(scanned.end).expect("it was read")))
}

/// Writes the file beside an old one, syncs it, renames it over, and syncs the folder.
fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("log.part");
    let mut file = File::create(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().expect("it lies in a folder"))?.sync_all()
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::disk(format!("{}: {error}", path.display()))
}

fn damaged(path: &Path, problem: &str) -> Failure {
    Failure::disk(format!("{}: {problem}. Nothing was changed", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DurableLog;
    use quorate_coordinator_core::log::Base;
    use quorate_coordinator_core::state::CoordinatorState;
    use quorate_placement::Profile;
    use quorate_quorum::{MemberId, Members, Point, Term, Vote, Write as QuorumWrite, WriteId};

    fn base() -> Base {
        let member = MemberId(7);
        Base {
            member,
            fleet: Some(FleetId(1)),
            vote: Vote {
                term: Term(1),
                given_to: None,
            },
            point: Point::default(),
            members: Members::first(member, "127.0.0.1:1".into()),
        }
    }

    fn write(number: u64) -> QuorumWrite {
        QuorumWrite {
            id: WriteId(number),
            vote: Some(Vote {
                term: Term(number),
                given_to: None,
            }),
            snapshot: None,
            cut_after: None,
            entries: vec![],
        }
    }

    #[test]
    fn a_copy_follows_what_is_appended_and_what_takes_the_logs_place() {
        let (own, copy, fresh) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let (mut log, _) = DurableLog::open(own.path()).unwrap();
        log.begin(
            base(),
            Some(&CoordinatorState::of_new_fleet(Profile::default_profile())),
        )
        .unwrap();
        let mut copying = Copying::begin(own.path().join(LOG), copy.path().join(LOG)).unwrap();
        let same = || fs::read(own.path().join(LOG)).unwrap() == fs::read(copy.path().join(LOG)).unwrap();
        assert!(same());
        for number in 2..5 {
            log.write(&[write(number)]).unwrap();
            copying.go_on().unwrap();
            assert!(same(), "after write {number}");
        }
        log.begin(
            base(),
            Some(&CoordinatorState::of_new_fleet(Profile::default_profile())),
        )
        .unwrap();
        copying.go_on().unwrap();
        assert!(same(), "a shorter file took its place");

        restore(copy.path(), fresh.path()).unwrap();
        assert!(
            restore(copy.path(), fresh.path()).is_err(),
            "nothing is overwritten"
        );
        let (_, opened) = DurableLog::open(fresh.path()).unwrap();
        assert!(matches!(opened.contents, Contents::Member(disk) if disk.base.member == MemberId(7)));
    }

    #[test]
    fn a_torn_end_is_left_out_and_damage_is_refused() {
        let (own, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mut log, _) = DurableLog::open(own.path()).unwrap();
        log.begin(
            base(),
            Some(&CoordinatorState::of_new_fleet(Profile::default_profile())),
        )
        .unwrap();
        log.write(&[write(2)]).unwrap();
        let path = own.path().join(LOG);
        let mut bytes = fs::read(&path).unwrap();
        let whole = bytes.len();
        bytes.extend_from_slice(&[9, 0, 0, 0]);
        fs::write(&path, &bytes).unwrap();
        let copying = Copying::begin(path.clone(), copy.path().join(LOG)).unwrap();
        assert_eq!(copying.copied, whole as u64);
        bytes[100] ^= 1; // in front of a whole record
        fs::write(&path, &bytes).unwrap();
        let before = fs::read(copy.path().join(LOG)).unwrap();
        assert!(Copying::begin(path, copy.path().join(LOG)).is_err());
        assert_eq!(
            fs::read(copy.path().join(LOG)).unwrap(),
            before,
            "the sound copy stays"
        );
    }
}
