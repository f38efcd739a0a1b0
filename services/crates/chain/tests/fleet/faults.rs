//! What goes wrong, and how much of it: the chain keeps one member that has lost nothing.

use quorate_types::Durability;
use rand::Rng;

use crate::world::{What, World};

impl World {
    pub fn fault(&mut self) {
        let s = self.rng.random_range(0..self.servers.len());
        match self.rng.random_range(0..100) {
            0..30 => {
                let other = (s + self.rng.random_range(1..self.servers.len())) % self.servers.len();
                self.cut_off(s, other);
            }
            30..60 => self.crash(s, false),
            60..65 => self.crash(s, true),
            65..72 => {
                let until = self.now + self.rng.random_range(1_000..100_000);
                self.servers[s].paused_until = until.max(self.servers[s].paused_until);
            }
            72..86 => self.suspect(s),
            86..90 => self.disk_fault(s),
            90..95 => {
                for other in (0..self.servers.len()).filter(|o| *o != s) {
                    self.cut_off(s, other);
                }
            }
            _ => self.crash_many(),
        }
    }

    fn cut_off(&mut self, a: usize, b: usize) {
        self.break_link(a, b);
        let at = self.now
            + if self.rng.random_bool(0.8) {
                self.rng.random_range(100..5_000)
            } else {
                100_000
            };
        self.at(at, What::Reconnect { a, b });
    }

    fn crash_many(&mut self) {
        for s in 0..self.servers.len() {
            if self.rng.random_bool(0.6) {
                self.crash(s, false);
            }
        }
    }

    /// `is_wiped`: the disk is lost too.
    fn crash(&mut self, s: usize, is_wiped: bool) {
        let loses_all = is_wiped || self.plan.durability == Durability::InMemory;
        if !self.servers[s].alive || (loses_all && !self.others_are_intact(s)) {
            return;
        }
        self.crashes += 1;
        self.trace
            .line(|| format!("{:>8} s{} crashes, wiped: {is_wiped}", self.now, s + 1));
        let server = &mut self.servers[s];
        server.alive = false;
        server.incarnation += 1;
        server.replica = None;
        server.disk.crash(&mut self.rng);
        if is_wiped {
            server.disk.wipe();
        }
        server.sessions.clear();
        server.is_dirty = false;
        server.disk_fault = false;
        server.commit_seen = 0;
        server.paused_until = 0;
        server.deferred.clear();
        for other in (0..self.servers.len()).filter(|o| *o != s) {
            self.break_link(s, other);
        }
        let hears_at = self.now + self.rng.random_range(1_000..40_000);
        self.master_hears(hears_at, s);
        let restarts_at = self.now + self.rng.random_range(500..150_000);
        self.at(restarts_at, What::Restart { server: s });
    }

    pub fn restart(&mut self, s: usize) {
        let server = &mut self.servers[s];
        if server.alive {
            return;
        }
        server.alive = true;
        if self.plan.durability == Durability::Persistent && server.disk.image.last() > 0 {
            let is_paced = self.plan.catchup_bytes.is_some();
            let replica = crate::server::paced(server.disk.recover(server.id), is_paced);
            server.commit_seen = replica.commit_index();
            server.replica = Some(replica);
        }
        let incarnation = self.servers[s].incarnation;
        let (now, delay) = (self.now, self.rng.random_range(500..5_000));
        self.at(
            now + delay,
            What::Tick {
                server: s,
                incarnation,
            },
        );
        for other in (0..self.servers.len()).filter(|o| *o != s) {
            let at = now + self.rng.random_range(100..5_000);
            self.at(at, What::Reconnect { a: s, b: other });
        }
        let hears_at = now + self.rng.random_range(100..5_000);
        self.master_hears(hears_at, s);
    }

    fn disk_fault(&mut self, s: usize) {
        self.set_disk_fault(s, true);
        let at = self.now + self.rng.random_range(1_000..50_000);
        self.at(at, What::DiskWorks { server: s });
    }

    pub fn set_disk_fault(&mut self, s: usize, fault: bool) {
        self.servers[s].disk_fault = fault;
        self.step(s, quorate_chain::Event::StorageFault(fault));
        self.start_sync(s);
    }

    /// Ends every disturbance.
    pub fn heal(&mut self) {
        for s in 0..self.servers.len() {
            self.servers[s].paused_until = 0;
            self.resume(s);
            if self.servers[s].disk_fault {
                self.set_disk_fault(s, false);
            }
            self.restart(s);
        }
        for a in 0..self.servers.len() {
            for b in a + 1..self.servers.len() {
                self.at(self.now + 1_000, What::Reconnect { a, b });
            }
        }
    }
}
