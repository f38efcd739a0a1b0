//! Loss on the way to a peer, by the kernel's count of segments. TCP repairs it, at a price that grows with each
//! loss in a row: bytes that get through now and then are no sign that a link is well.

use quorate_types::Micros;

/// Ticks that are remembered: most of a second.
const TICKS: u32 = 8;
/// So many of them with lost segments show a link that loses one of ten, or more. A sound network loses one of
/// thousands.
const LOSSY_TICKS: u32 = 4;

/// It outlives a link that is opened again.
#[derive(Debug, Default)]
pub struct LossWatch {
    /// The kernel's count at the last tick. That of a link that was opened again begins anew.
    counted: Option<u32>,
    /// The last ticks, the newest lowest: set when there was loss.
    recent: u8,
    /// The first tick with loss of this spell, in lived time.
    since: Option<Micros>,
}

impl LossWatch {
    /// At each tick of a link that is open. `lost`: its count.
    pub fn tick(&mut self, lost: u32, now: Micros) {
        let before = self.counted.replace(lost);
        let has_loss = before.is_some_and(|before| lost > before);
        self.recent = self.recent << 1 | u8::from(has_loss);
        self.since = match self.recent {
            0 => None,
            _ => self.since.or(has_loss.then_some(now)),
        };
    }

    /// How long bytes have been lost; zero for a few of them.
    pub fn lasted(&self, now: Micros) -> Micros {
        let is_lossy = self.recent.count_ones() >= LOSSY_TICKS;
        self.since
            .filter(|_| is_lossy)
            .map_or(0, |since| now.saturating_sub(since))
    }
}

const _: () = assert!(TICKS == u8::BITS && LOSSY_TICKS < TICKS);

#[cfg(test)]
mod tests {
    use super::LossWatch;

    /// Ticks from `from` on, with these counts.
    fn tick(watch: &mut LossWatch, from: u64, counts: &[u32]) {
        for (at, count) in (from..).zip(counts) {
            watch.tick(*count, at);
        }
    }

    #[test]
    fn half_of_the_ticks_with_loss_make_a_lossy_link() {
        let mut watch = LossWatch::default();
        tick(&mut watch, 0, &[7, 9, 9, 12, 13]);
        assert_eq!(watch.lasted(5), 0, "three of them");
        tick(&mut watch, 5, &[14]);
        assert_eq!(watch.lasted(6), 5, "since the first");
        tick(&mut watch, 6, &[14; 8]);
        assert_eq!(watch.lasted(14), 0);
        tick(&mut watch, 14, &[15, 16, 17, 18]);
        assert_eq!(watch.lasted(20), 6, "another spell");
    }

    #[test]
    fn a_link_that_was_opened_again_goes_on_with_the_spell() {
        let mut watch = LossWatch::default();
        tick(&mut watch, 0, &[0, 1, 2, 3]);
        tick(&mut watch, 4, &[1, 2]);
        assert_eq!(watch.lasted(6), 5, "its first count is no loss");
    }
}
