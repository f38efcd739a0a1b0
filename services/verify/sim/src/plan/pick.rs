//! One of several choices, each as likely.

use rand::Rng;
use rand::rngs::SmallRng;

pub(super) fn pick<'a, T>(rng: &mut SmallRng, choices: &'a [T]) -> &'a T {
    &choices[rng.random_range(0..choices.len())]
}
