//! Faults that a run may have.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A link breaks, with all that is on it.
    LinkBreak,
    /// All links of a server break.
    AllLinksBreak,
    /// A server and all others, and the coordinator, cannot reach one another. Clients reach it.
    Isolate,
    /// One direction between two servers carries nothing; no connection breaks.
    OneWay,
    /// Both directions between two servers carry nothing.
    Partition,
    /// One direction between a server and the coordinator carries nothing.
    ControlOneWay,
    /// The connection to the coordinator breaks.
    ControlBreak,
    /// A process is killed.
    Crash,
    /// Several processes are killed at once.
    CrashMany,
    /// All processes are killed at once.
    CrashAll,
    /// A process is killed, and what its journal held is gone.
    Wipe,
    /// A machine is lost for ever; another joins.
    Replace,
    /// Durable records are damaged, by a bit or by pages, and the process is killed.
    BitFlip,
    /// A process is killed, and its disk has lost the last writes that it had called durable.
    DiskLies,
    /// Durable records are damaged while their server runs.
    Rot,
    DiskFull,
    /// A sync fails: the server is read-only until it is restarted.
    DiskFails,
    DiskSlow,
    /// A process is stopped, and goes on (SIGSTOP).
    Pause,
    /// Syncs of a server do not return for a while; its heartbeats go on. A shard that syncs in its own thread hangs, too.
    HungSync,
    /// A shard's thread does nothing for a while; heartbeats go on.
    HungThread,
    /// Syncs of most servers do not return: their disks are on the same storage.
    HungStorage,
    CoordinatorCrash,
    CoordinatorPause,
    /// Coordinators cannot reach one another.
    CoordinatorsApart,
    CoordinatorDiskSlow,
    /// The disk of one of several coordinators is lost. Another one comes.
    CoordinatorLost,
    /// The log of one of several coordinators is damaged. Another one comes.
    CoordinatorDamaged,
    /// A coordinator comes in the place of another that runs.
    CoordinatorReplaced,
    /// The coordinator is killed, and started on an older copy of its log.
    CoordinatorRestore,
    /// The wall clock of a server or of the coordinator jumps.
    ClockJump,
    /// A process is killed, and finds another wall clock when it starts again.
    ClockAtStart,
    /// A client's connection breaks.
    ClientBreak,
    /// A bit of a frame on a link is flipped.
    FrameFlip,
    /// A client sends to a server that is not the head.
    Astray,
    /// A disk fills, and nobody makes room: its server has to be done without.
    DiskStaysFull,
    /// An operator starts the drain of a server.
    Drain,
    /// An operator calls a drain off.
    CallOffDrain,
    /// An operator stops a drained server.
    StopDrained,
    /// An assertion waits for a batch of a group: it stops each replica that takes it.
    Poison,
}

impl Fault {
    /// Parts of a server that hang while its heartbeats go on.
    pub const HANGS: &[Fault] = &[Fault::HungSync, Fault::HungThread, Fault::HungStorage];

    /// Other coordinators come.
    pub const REPLACES: &[Fault] = &[
        Fault::CoordinatorLost,
        Fault::CoordinatorDamaged,
        Fault::CoordinatorReplaced,
    ];

    /// Faults that any seed may draw. [`Fault::Poison`] has a profile of its own.
    pub const ALL: &[Fault] = &[
        Fault::LinkBreak,
        Fault::AllLinksBreak,
        Fault::Isolate,
        Fault::OneWay,
        Fault::Partition,
        Fault::ControlOneWay,
        Fault::ControlBreak,
        Fault::Crash,
        Fault::CrashMany,
        Fault::CrashAll,
        Fault::Wipe,
        Fault::Replace,
        Fault::BitFlip,
        Fault::DiskLies,
        Fault::Rot,
        Fault::DiskFull,
        Fault::DiskFails,
        Fault::DiskSlow,
        Fault::Pause,
        Fault::HungSync,
        Fault::HungThread,
        Fault::HungStorage,
        Fault::CoordinatorCrash,
        Fault::CoordinatorPause,
        Fault::CoordinatorsApart,
        Fault::CoordinatorDiskSlow,
        Fault::CoordinatorLost,
        Fault::CoordinatorDamaged,
        Fault::CoordinatorReplaced,
        Fault::CoordinatorRestore,
        Fault::ClockJump,
        Fault::ClockAtStart,
        Fault::ClientBreak,
        Fault::FrameFlip,
        Fault::Astray,
        Fault::DiskStaysFull,
        Fault::Drain,
        Fault::CallOffDrain,
        Fault::StopDrained,
    ];

    /// Its name in tables.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_uppercase() && !name.is_empty() {
                name.push(' ');
            }
            name.extend(c.to_lowercase());
        }
        name
    }
}
