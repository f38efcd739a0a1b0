//! A hash over everything that happened: two runs of one seed must agree in it.

#[derive(Debug)]
pub struct Trace {
    hash: u64,
    pub events: u64,
    prints: bool,
}

impl Trace {
    pub fn new() -> Self {
        let prints = std::env::var("FLEET_TRACE").is_ok() && std::env::var("FLEET_SEED").is_ok();
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            events: 0,
            prints,
        }
    }

    pub fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.hash = (self.hash ^ number)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(29);
        }
    }

    pub fn line(&self, text: impl FnOnce() -> String) {
        if self.prints {
            println!("{}", text());
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }
}
