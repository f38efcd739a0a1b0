//! The coordinators that a server knows, and the one to dial next. One of them leads; the others name it.

use std::time::Duration;

/// The first wait after a failed attempt; later ones double.
const DELAY_MIN: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_secs(1);

/// Addresses as the operator gave them, and the one that was told last.
#[derive(Debug)]
pub struct KnownCoordinators {
    addresses: Vec<String>,
    next: usize,
    /// The leader, as another coordinator has named it.
    told: Option<String>,
    /// A told address is dialed at once, but not time after time.
    was_told: bool,
    delay: Duration,
    /// The greatest term of any that has led.
    term: u64,
}

impl KnownCoordinators {
    /// `addresses`: at least one. `first`: any number, so that servers do not all begin with the same.
    pub fn new(addresses: Vec<String>, first: u64) -> Self {
        assert!(!addresses.is_empty(), "flags ask for one");
        Self {
            next: (first % addresses.len() as u64) as usize,
            addresses,
            told: None,
            was_told: false,
            delay: DELAY_MIN,
            term: 0,
        }
    }

    /// Refuses terms before this one: the greatest that an earlier process knew.
    pub fn since(mut self, term: u64) -> Self {
        self.term = term;
        self
    }

    /// A coordinator that answers no heartbeat for so many intervals is taken for gone, and the next is dialed. The next
    /// leader gives servers one lease to come over, which may be six intervals; alone, it may as well be waited for.
    pub fn unanswered_max(&self) -> u64 {
        if self.addresses.len() > 1 { 2 } else { 8 }
    }

    /// The greatest term that it knows.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// The address to dial.
    pub fn current(&self) -> &str {
        self.told.as_ref().unwrap_or(&self.addresses[self.next])
    }

    /// Whether the term is not over, as far as this server knows. None: an older coordinator, which does not say.
    pub fn is_current(&mut self, term: Option<u64>) -> bool {
        let is_current = term.is_none_or(|term| term >= self.term);
        self.term = self.term.max(term.unwrap_or(0));
        is_current
    }

    /// The current one leads.
    pub fn leads(&mut self) {
        self.delay = DELAY_MIN;
        self.was_told = false;
    }

    /// The current one does not lead, and says who does. Gives the time to wait, to be shortened or lengthened at random.
    pub fn told(&mut self, leader: Option<String>) -> Duration {
        let leader = leader.filter(|leader| !leader.is_empty() && leader != self.current());
        let Some(leader) = leader else {
            return self.failed();
        };
        self.told = Some(leader);
        if std::mem::replace(&mut self.was_told, true) {
            return self.wait();
        }
        Duration::ZERO
    }

    /// The current one is away, or the connection to it has ended. Gives the time to wait before the next is dialed.
    pub fn failed(&mut self) -> Duration {
        if self.told.take().is_none() {
            self.next = (self.next + 1) % self.addresses.len();
        }
        self.was_told = false;
        self.wait()
    }

    fn wait(&mut self) -> Duration {
        let delay = self.delay;
        self.delay = (delay * 2).min(DELAY_MAX);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> KnownCoordinators {
        KnownCoordinators::new(["a", "b", "c"].map(String::from).to_vec(), 4)
    }

    #[test]
    fn each_is_dialed_in_its_turn_with_growing_delays() {
        let mut coordinators = three();
        let mut dialed = Vec::new();
        let mut delays = Vec::new();
        for _ in 0..8 {
            dialed.push(coordinators.current().to_string());
            delays.push(coordinators.failed().as_millis());
        }
        assert_eq!(dialed, ["b", "c", "a", "b", "c", "a", "b", "c"]);
        assert_eq!(delays, [50, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
        coordinators.leads();
        assert_eq!(coordinators.failed(), DELAY_MIN);
    }

    #[test]
    fn a_term_that_is_over_is_known() {
        let mut coordinators = three();
        for (term, expected) in [
            (Some(3), true),
            (Some(5), true),
            (Some(4), false),
            (None, true),
            (Some(5), true),
        ] {
            assert_eq!(coordinators.is_current(term), expected, "{term:?}");
        }
        let mut again = three().since(coordinators.term());
        assert!(!again.is_current(Some(4)) && again.is_current(Some(5)));
    }

    #[test]
    fn a_named_leader_is_dialed_at_once_but_not_time_after_time() {
        let mut coordinators = three();
        assert_eq!(coordinators.told(Some("x".into())), Duration::ZERO);
        assert_eq!(coordinators.current(), "x");
        assert_eq!(coordinators.told(Some("y".into())), DELAY_MIN);
        assert_eq!(coordinators.current(), "y");
        // It is away: the list goes on where it was.
        assert_eq!(coordinators.failed(), DELAY_MIN * 2);
        assert_eq!(coordinators.current(), "b");
        for nobody in [None, Some(String::new()), Some("b".into())] {
            let before = coordinators.current().to_string();
            coordinators.told(nobody);
            assert_ne!(coordinators.current(), before);
            coordinators.next = 1;
        }
    }
}
