//! A server's behaviour, as in `services/replica`. Each file calls only files above it in this list:
//!
//! - [`control`]: its connection to the coordinator
//! - [`journal`], [`disk_reads`], [`repairs`]: writes to its disk, reads from it, and repairs of records there
//! - [`answers`]: a group's answers to clients; [`timers`]: events that groups ask for
//! - [`outputs`]: a group's outputs, carried out by these
//! - [`groups`]: steps and flushes of groups
//! - [`hosting`]: groups come and go; [`ticks`]: time passes for them
//! - [`requests`], [`peers`], [`disk_results`], [`copier`]: events from clients, links and the disk
//! - [`process`]: killed and started; [`storage`]: the disk's syncs and faults
//! - [`orders`]: messages from the coordinator; `reports`: contents of a heartbeat
//! - [`hangs`]: parts of it hang, and it looks at them

mod answers;
pub mod control;
pub mod copier;
mod disk_reads;
pub mod disk_results;
pub mod groups;
pub mod hangs;
mod hosting;
mod journal;
pub mod orders;
mod outputs;
pub mod peers;
pub mod process;
mod quarantine;
mod repairs;
mod reports;
pub mod requests;
pub mod storage;
pub mod ticks;
mod timers;
