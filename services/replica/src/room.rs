//! The memory and disk of this server that replicas may fill, and the pool that its groups share beside
//! (`docs/internals/allocation.md`, "Memory and disk").

use std::path::Path;

use quorate_types::Room;
use quorate_types::limits::{
    DISK_RESERVE_BYTES, JOURNAL_BUFFER_BYTES_MAX, JOURNAL_SEGMENTS_BESIDE, SERVER_MEMORY_BYTES,
    SERVER_POOL_PART,
};

use crate::flags::Flags;

/// The part of a machine's memory, or of a container's, that a server takes by default: the rest is for the page cache
/// and for other programs.
const MEMORY_TAKEN: (u64, u64) = (3, 4);
/// A container without a limit of its own has this, or about this.
const NO_LIMIT: u64 = 1 << 60;

/// The part that the server offers, and the part that it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub room: Room,
    /// Memory beyond what each group was admitted with.
    pub pool_bytes: u64,
}

/// By the flags, and else by the machine. An amount that cannot be measured is not limited, and the log says so.
pub fn offer(flags: &Flags) -> Offer {
    let memory = flags.memory_bytes.or_else(measured_memory_bytes);
    let disk = flags.disk_bytes.or_else(|| measured_disk_bytes(flags));
    if memory.is_none() || disk.is_none() {
        tracing::warn!(
            memory,
            disk,
            "memory or disk of this machine cannot be measured: admission does not limit it; give --memory-bytes \
             and --disk-bytes"
        );
    }
    let segments = u64::from(flags.journal_keep_segments) + JOURNAL_SEGMENTS_BESIDE;
    let has_device_of_its_own = flags.group_logs_dir.is_some() && !is_one_device(flags);
    let journal_bytes = match has_device_of_its_own {
        true => 0,
        false => segments * flags.journal_segment_bytes,
    };
    let offer = Offer {
        room: Room {
            memory_bytes: memory.map(promised_memory_bytes),
            disk_bytes: disk.map(|bytes| bytes.saturating_sub(DISK_RESERVE_BYTES + journal_bytes)),
        },
        pool_bytes: memory.map_or(u64::MAX, pool_bytes),
    };
    let Room {
        memory_bytes,
        disk_bytes,
    } = offer.room;
    tracing::info!(
        memory,
        disk,
        memory_bytes,
        disk_bytes,
        pool_bytes = offer.pool_bytes,
        "room for replicas"
    );
    offer
}

fn pool_bytes(memory_bytes: u64) -> u64 {
    memory_bytes / SERVER_POOL_PART
}

/// All but the pool and what the server itself takes: its journal holds each byte twice, waiting and being written.
fn promised_memory_bytes(memory_bytes: u64) -> u64 {
    let own = SERVER_MEMORY_BYTES + 2 * JOURNAL_BUFFER_BYTES_MAX as u64;
    memory_bytes.saturating_sub(own + pool_bytes(memory_bytes))
}

fn measured_memory_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = total_of(&read("/proc/meminfo")?)?;
    let container = read("/proc/self/cgroup").map_or(NO_LIMIT, |cgroups| limit_of(&cgroups, &read));
    let (taken, of) = MEMORY_TAKEN;
    Some(machine.min(container) / of * taken)
}

/// `MemTotal` of `/proc/meminfo`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The least limit of the process's memory groups and those above them, of either version of cgroups.
fn limit_of(cgroups: &str, read: &dyn Fn(&str) -> Option<String>) -> u64 {
    let mut least = NO_LIMIT;
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            one if one.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for folder in Path::new(path).ancestors() {
            let folder = folder.to_string_lossy();
            let limit = read(&format!("{root}/{}/{file}", folder.trim_matches('/')));
            // "max" is no number, and no limit.
            least = least.min(
                limit
                    .and_then(|text| text.trim().parse().ok())
                    .unwrap_or(NO_LIMIT),
            );
        }
    }
    least
}

/// Free bytes of the group logs' device, and bytes that this server has there already. Others' bytes are theirs.
fn measured_disk_bytes(flags: &Flags) -> Option<u64> {
    let folder = flags.group_logs_dir();
    let device = if folder.exists() {
        folder.as_path()
    } else {
        flags.data_dir.as_path()
    };
    let free = quorate_journal::free_bytes(device).ok()?;
    let own = match flags.group_logs_dir.is_some() && !is_one_device(flags) {
        true => bytes_in(&folder),
        false => bytes_in(&flags.data_dir) + flags.group_logs_dir.as_deref().map_or(0, bytes_in),
    };
    Some(free + own)
}

fn is_one_device(flags: &Flags) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).ok().map(|found| found.dev());
    device(&flags.group_logs_dir()).is_none_or(|of_logs| device(&flags.data_dir) == Some(of_logs))
}

/// Bytes of all files in a folder, and below.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(found) = std::fs::read_dir(folder) else {
        return 0;
    };
    let bytes_of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(one) if one.is_dir() => bytes_in(&entry.path()),
        Ok(one) => one.len(),
        Err(_) => 0,
    };
    found.flatten().map(bytes_of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_promises_what_it_does_not_need_itself() {
        for total in [1 << 30, 64 << 30] {
            let (promised, pool) = (promised_memory_bytes(total), pool_bytes(total));
            assert!(
                promised > 0 && promised + pool < total,
                "{total}: {promised} and {pool}"
            );
        }
        assert!(promised_memory_bytes(64 << 30) > 55 << 30);
        assert_eq!(promised_memory_bytes(1), 0);
    }

    #[test]
    fn the_machine_and_its_containers_bound_memory() {
        assert_eq!(
            total_of("MemFree: 1 kB\nMemTotal:       2048 kB\n"),
            Some(2 << 20)
        );
        assert_eq!(total_of("nothing"), None);
        let files = |path: &str| match path {
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".to_string()),
            "/sys/fs/cgroup/a/memory.max" => Some("1000\n".to_string()),
            "/sys/fs/cgroup/memory/c/memory.limit_in_bytes" => Some("900\n".to_string()),
            _ => None,
        };
        assert_eq!(limit_of("0::/a/b\n", &files), 1_000);
        assert_eq!(limit_of("0::/a/b\n4:cpu,memory:/c/d\n", &files), 900);
        assert_eq!(limit_of("3:cpuset:/\n", &files), NO_LIMIT);
    }
}
