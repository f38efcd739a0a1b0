//! Versions of protocols and formats. A release speaks its own and its predecessor's, so two releases run side by side.
//!
//! Two ends of a connection agree on the newest version that both speak. Forms that stay on disks, or reach all parts of a
//! fleet, follow the fleet's version: it is raised once everything can read them, and never lowered
//! (`docs/operating/upgrades.md`).

use serde::{Deserialize, Serialize};

/// A range of versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    pub oldest: u16,
    pub newest: u16,
}

/// Between clients and servers (`sdk/contract/wire.md`).
pub const CLIENT: Versions = Versions::only(1);
/// Between servers. In version 1 acknowledgements went down the chain. Version 3 knows one-sided writes.
pub const LINK: Versions = Versions::between(2, 3);
/// Between servers and coordinators. Version 2 tells servers the fleet's version.
pub const CONTROL: Versions = Versions::between(1, 2);
/// Between coordinators.
pub const MEMBERS: Versions = Versions::only(1);
/// The fleet's. From version 2 on, the coordinators' log may have the command that raises it, SLAs with reads, and estimates
/// of servers' capacities.
pub const FLEET: Versions = Versions::between(1, 2);
/// The fleet's version from which on an SLA may reserve reads.
pub const FLEET_WITH_READS: u16 = 2;
/// The fleet's version from which on admission goes by servers' estimates of their capacities.
pub const FLEET_WITH_ESTIMATES: u16 = 2;
/// Groups may have partitions from this version of the fleet on.
pub const FLEET_WITH_PARTITIONS: u16 = 2;
/// Replicas may move for a resize, by demand or one by one from this version of the fleet on.
pub const FLEET_WITH_RELOCATIONS: u16 = 2;
/// Projects may have guarantees from this version of the fleet on.
pub const FLEET_WITH_GUARANTEES: u16 = 2;
/// Credentials may be revoked from this version of the fleet on.
pub const FLEET_WITH_REVOCATIONS: u16 = 2;

impl Default for Versions {
    /// Releases that do not say speak the first version.
    fn default() -> Self {
        Self::only(1)
    }
}

impl Versions {
    pub const fn between(oldest: u16, newest: u16) -> Self {
        assert!(oldest <= newest, "a range of versions begins at its oldest");
        Self { oldest, newest }
    }

    pub const fn only(version: u16) -> Self {
        Self::between(version, version)
    }

    /// A range as a hello says it: a newest of 0, which releases without ranges say, is the oldest. `None`: it ends before
    /// it begins.
    pub fn told(oldest: u16, newest: u16) -> Option<Self> {
        let newest = if newest == 0 { oldest } else { newest };
        (oldest <= newest).then_some(Self { oldest, newest })
    }

    /// The newest of the range as a hello says it: 0 for the oldest.
    pub fn newest_told(self) -> u16 {
        if self.newest == self.oldest {
            0
        } else {
            self.newest
        }
    }

    pub fn has(self, version: u16) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// The newest version that both speak.
    pub fn agree(self, theirs: Self) -> Option<u16> {
        let newest = self.newest.min(theirs.newest);
        (self.has(newest) && theirs.has(newest)).then_some(newest)
    }
}

impl std::fmt::Display for Versions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.newest - self.oldest {
            0 => write!(f, "version {}", self.oldest),
            _ => write!(f, "versions {} to {}", self.oldest, self.newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ends_agree_on_the_newest_that_both_speak() {
        let of = Versions::between;
        assert_eq!(of(1, 2).agree(of(1, 1)), Some(1), "a release and its predecessor");
        assert_eq!(of(1, 2).agree(of(2, 3)), Some(2), "and its successor");
        assert_eq!(of(1, 2).agree(of(1, 9)), Some(2));
        assert_eq!(of(1, 2).agree(of(3, 4)), None);
        assert_eq!(of(3, 4).agree(of(1, 2)), None);
    }

    #[test]
    fn a_hello_without_a_range_speaks_one_version() {
        assert_eq!(Versions::told(2, 0), Some(Versions::only(2)));
        assert_eq!(Versions::told(2, 3), Some(Versions::between(2, 3)));
        assert_eq!(Versions::told(3, 2), None);
        for versions in [Versions::only(2), Versions::between(2, 5)] {
            assert_eq!(
                Versions::told(versions.oldest, versions.newest_told()),
                Some(versions)
            );
        }
        assert_eq!(Versions::only(2).to_string(), "version 2");
        assert_eq!(Versions::between(2, 5).to_string(), "versions 2 to 5");
    }
}
