//! Memory that others write wakes nobody, so somebody has to look: at once, slowly, or not until the peer calls.

use std::time::{Duration, Instant};

/// A peer that runs tells within this time what it has of the bytes sent. Nobody sleeps before that.
const SETTLING: Duration = Duration::from_micros(500);
/// A peer that does not: rings are looked at this often.
const SLOWLY: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Let others run, and look.
    Look,
    /// Look after this time, or when something is to be written.
    Slowly(Duration),
    /// Look when the peer calls, or something is to be written.
    Sleep,
}

#[derive(Debug)]
pub struct Pace {
    spin: Duration,
    quiet_since: Option<Instant>,
}

impl Pace {
    /// Looks without sleeping as long as bytes come, and for `spin` after that.
    pub fn new(spin: Duration) -> Self {
        Self {
            spin,
            quiet_since: None,
        }
    }

    /// Bytes came or went.
    pub fn moved(&mut self) {
        self.quiet_since = None;
    }

    /// Nothing happened. `rest`: tells the peer what it waits for; true if nobody needs to look.
    pub fn quiet<E>(&mut self, now: Instant, rest: impl FnOnce() -> Result<bool, E>) -> Result<Next, E> {
        let quiet = now - *self.quiet_since.get_or_insert(now);
        if quiet >= self.spin && rest()? {
            self.quiet_since = None;
            return Ok(Next::Sleep);
        }
        Ok(if quiet < self.spin + SETTLING {
            Next::Look
        } else {
            Next::Slowly(SLOWLY)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_on_until_the_peer_has_told_and_sleeps_only_then() {
        let begun = Instant::now();
        let at = |us| begun + Duration::from_micros(us);
        let mut pace = Pace::new(Duration::from_micros(200));
        let not_asked = || -> Result<bool, ()> { panic!("it spins") };
        assert_eq!(pace.quiet(at(0), not_asked), Ok(Next::Look));
        assert_eq!(pace.quiet(at(199), not_asked), Ok(Next::Look));
        let (owed, told) = (|| Ok::<_, ()>(false), || Ok::<_, ()>(true));
        assert_eq!(pace.quiet(at(200), owed), Ok(Next::Look));
        assert_eq!(pace.quiet(at(699), owed), Ok(Next::Look));
        assert_eq!(pace.quiet(at(700), owed), Ok(Next::Slowly(SLOWLY)));
        assert_eq!(pace.quiet(at(1_700), told), Ok(Next::Sleep));
        assert_eq!(pace.quiet(at(9_000), not_asked), Ok(Next::Look), "it was woken");
        pace.moved();
        assert_eq!(pace.quiet(at(9_900), not_asked), Ok(Next::Look));
    }
}
