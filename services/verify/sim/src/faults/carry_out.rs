//! How each fault is done, and undone.

use quorate_types::Micros;
use rand::Rng;

use super::Fault;
use crate::client::Who;
use crate::schedule::{Node, What};
use crate::world::World;

impl World {
    pub fn is_fault_on(&self, fault: Fault) -> bool {
        !self.is_healing && self.plan.faults.iter().any(|(f, _)| *f == fault)
    }

    /// Something goes wrong, if it can.
    pub fn fault(&mut self) {
        let total: u32 = self.plan.faults.iter().map(|(_, weight)| weight).sum();
        let mut at = self.rng.random_range(0..total);
        let mut fault = self.plan.faults[0].0;
        for (candidate, weight) in &self.plan.faults {
            fault = *candidate;
            if at < *weight {
                break;
            }
            at -= weight;
        }
        if self.commit_fault(fault) {
            self.counts.fault(fault);
            self.trace.numbers(&[fault as u64]);
        }
    }

    /// Whether it was done.
    fn commit_fault(&mut self, fault: Fault) -> bool {
        let s = self.rng.random_range(0..self.servers.len());
        let other = (s + self.rng.random_range(1..self.servers.len())) % self.servers.len();
        self.trace
            .line(None, || format!("*** {fault:?} s{} (s{})", s + 1, other + 1));
        match fault {
            Fault::LinkBreak => self.break_link(s, other),
            Fault::Isolate => self.isolate(s),
            Fault::AllLinksBreak => {
                for peer in (0..self.servers.len()).filter(|peer| *peer != s) {
                    self.break_link(s, peer);
                }
            }
            Fault::OneWay => self.block(Node::Server(s), Node::Server(other)),
            Fault::Partition => {
                self.block(Node::Server(s), Node::Server(other));
                self.block(Node::Server(other), Node::Server(s));
            }
            Fault::ControlOneWay => {
                if self.rng.random_bool(0.5) {
                    self.block(Node::Server(s), Node::Coordinator);
                } else {
                    self.block(Node::Coordinator, Node::Server(s));
                }
            }
            Fault::ControlBreak => self.break_control(s),
            Fault::Crash => return self.crash_if(s),
            Fault::CrashMany => {
                let chosen: Vec<usize> = (0..self.servers.len())
                    .filter(|_| self.rng.random_bool(0.6))
                    .collect();
                return chosen.into_iter().filter(|s| self.crash_if(*s)).count() > 0;
            }
            Fault::CrashAll => {
                return (0..self.servers.len()).filter(|s| self.crash_if(*s)).count() > 0;
            }
            Fault::Wipe => return self.lose(s, |world, s| world.wipe(s)),
            Fault::Replace => return self.lose(s, |world, s| world.replace(s)),
            Fault::BitFlip => return self.lose(s, |world, s| world.damage(s)),
            Fault::Rot => return self.rot_if(s),
            Fault::DiskFull | Fault::DiskFails => return self.disk_fault(s, fault),
            Fault::DiskSlow => {
                self.servers[s].sync_factor = 20;
                let at = self.now + self.rng.random_range(10_000..500_000);
                self.at(at, What::DiskFast { server: s });
            }
            Fault::Pause => self.pause(s),
            Fault::CoordinatorCrash => return self.crash_coordinator(),
            Fault::CoordinatorPause => {
                let until = self.now + self.rng.random_range(10_000..2_000_000);
                self.pause_coordinator(until);
            }
            Fault::ClockJump => self.jump_clock(s),
            Fault::ClientBreak => {
                let c = self.rng.random_range(0..self.writers.len());
                self.close(Who::Writer(c));
            }
            Fault::Drain => return self.want_drain(s),
            Fault::CallOffDrain => return self.want_no_drain(s),
            Fault::StopDrained => return self.stop_drained(s),
            // These happen where frames and attaches are sent.
            Fault::FrameFlip | Fault::Astray => return false,
        }
        true
    }

    fn jump_clock(&mut self, s: usize) {
        let jump = self.rng.random_range(-3_600_000_000i64..3_600_000_000);
        match self.rng.random_bool(0.3) {
            true => self.coordinator.wall_offset_us += jump,
            false => self.servers[s].wall_offset_us += jump,
        }
    }

    pub fn is_blocked(&self, from: Node, to: Node) -> bool {
        self.blocked.contains_key(&(from, to))
    }

    /// Long enough, often, that clients have to be sent elsewhere.
    fn isolate(&mut self, s: usize) {
        let length = self.rng.random_range(200_000..4_000_000);
        let servers = (0..self.servers.len()).map(Node::Server);
        for other in servers.chain([Node::Coordinator]) {
            if other != Node::Server(s) {
                self.block_for(Node::Server(s), other, length);
                self.block_for(other, Node::Server(s), length);
            }
        }
    }

    fn block(&mut self, from: Node, to: Node) {
        let short = self.rng.random_bool(0.7);
        let length: Micros = if short {
            self.rng.random_range(1_000..300_000)
        } else {
            self.rng.random_range(300_000..6_000_000)
        };
        self.block_for(from, to, length);
    }

    fn block_for(&mut self, from: Node, to: Node, length: Micros) {
        let until = self.now + length;
        let until = until.max(self.blocked.get(&(from, to)).copied().unwrap_or(0));
        self.blocked.insert((from, to), until);
        self.at(until, What::Unblock { from, to });
        if let (Node::Server(from), Node::Server(to)) = (from, to) {
            self.watch_silence(to, from);
        }
    }

    pub fn unblock(&mut self, from: Node, to: Node) {
        if self
            .blocked
            .get(&(from, to))
            .is_none_or(|until| *until > self.now)
        {
            return;
        }
        self.blocked.remove(&(from, to));
        match (from, to) {
            (Node::Server(from), Node::Server(to)) => self.resume_link(from, to),
            (Node::Server(server), Node::Coordinator) => self.resume_control(server, true),
            (Node::Coordinator, Node::Server(server)) => self.resume_control(server, false),
            (Node::Coordinator, Node::Coordinator) => unreachable!("nobody is cut off from itself"),
        }
    }

    fn pause(&mut self, s: usize) {
        let length = if self.rng.random_bool(0.7) {
            self.rng.random_range(1_000..200_000)
        } else {
            self.rng.random_range(200_000..5_000_000)
        };
        let until = self.now + length;
        self.servers[s].paused_until = until.max(self.servers[s].paused_until);
        for peer in (0..self.servers.len()).filter(|peer| *peer != s) {
            self.watch_silence(peer, s);
        }
    }

    /// A crash, if that loses no group that may not be lost.
    fn crash_if(&mut self, s: usize) -> bool {
        let in_memory = self.in_memory_groups(s);
        if !self.servers[s].alive || !in_memory.iter().all(|g| self.may_lose(s, *g)) {
            return false;
        }
        self.crash(s);
        true
    }

    /// Loses all that a server holds, if that loses no group that may not be lost.
    fn lose(&mut self, s: usize, how: impl FnOnce(&mut World, usize)) -> bool {
        if !self.servers[s].alive || !(0..self.ledgers.len()).all(|g| self.may_lose(s, g)) {
            return false;
        }
        how(self, s);
        true
    }

    /// Records go bad on a running server, if others have them.
    fn rot_if(&mut self, s: usize) -> bool {
        if !self.servers[s].alive || !(0..self.ledgers.len()).all(|g| self.others_have(s, g)) {
            return false;
        }
        self.rot(s);
        true
    }

    fn disk_fault(&mut self, s: usize, fault: Fault) -> bool {
        if !self.servers[s].alive || self.servers[s].disk_fault {
            return false;
        }
        self.set_disk_fault(s, true);
        let incarnation = self.servers[s].incarnation;
        if fault == Fault::DiskFails {
            // Somebody restarts it in the end.
            let at = self.now + self.rng.random_range(10_000..1_000_000);
            self.servers[s].fails_until = Some(at);
            self.at(
                at,
                What::DiskWorks {
                    server: s,
                    incarnation,
                },
            );
        } else {
            let at = self.now + self.rng.random_range(1_000..400_000);
            self.at(
                at,
                What::DiskWorks {
                    server: s,
                    incarnation,
                },
            );
        }
        true
    }

    /// Ends every disturbance.
    pub fn heal(&mut self) {
        let blocked: Vec<(Node, Node)> = self.blocked.keys().copied().collect();
        for (from, to) in blocked {
            self.blocked.insert((from, to), self.now);
            self.unblock(from, to);
        }
        self.restart_coordinator();
        self.pause_coordinator(self.now);
        for s in 0..self.servers.len() {
            self.servers[s].paused_until = self.now;
            self.servers[s].sync_factor = 1;
            self.servers[s].wall_offset_us = 0;
            self.resume(s);
            let incarnation = self.servers[s].incarnation;
            if self.servers[s].disk_fault {
                self.disk_works(s, incarnation);
            }
            self.restart(s);
        }
    }
}
