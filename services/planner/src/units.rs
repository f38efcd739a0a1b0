//! Amounts as they are written (cores, bytes, operations) and as they are computed with (tokens, and thousandths of them).

use quorate_burst::Vector;
use quorate_placement::Amounts;
use quorate_types::Room;
use quorate_types::cost::{MILLI_PER_TOKEN, RESOURCES, ResourceVector, TOKENS_PER_UNIT};

use crate::limits::amount_max;
use crate::unusable::Unusable;

pub fn tokens(capacity: &[f64]) -> [u64; RESOURCES.len()] {
    std::array::from_fn(|i| (capacity[i] * TOKENS_PER_UNIT[i]).floor() as u64)
}

/// A demand, rounded up. It has no space: vectors of instances are rates.
pub fn demand(amounts: &[f64]) -> Amounts {
    Amounts::of_rates(std::array::from_fn(|i| {
        (amounts[i] * TOKENS_PER_UNIT[i]).ceil() as u64
    }))
}

/// A server's rates and room.
pub fn capacity(amounts: &[f64], room: Room) -> Amounts {
    let unlimited = Amounts::of_capacity(ResourceVector::default(), room, 1.0);
    Amounts::new(tokens(amounts), unlimited.space())
}

/// In the units of the instance, for answers.
pub fn natural(milli: &Vector) -> [f64; 3] {
    std::array::from_fn(|i| milli[i] as f64 / MILLI_PER_TOKEN / TOKENS_PER_UNIT[i])
}

/// Thousandths of tokens. A whole number that a double misses by less than a millionth is not rounded away.
pub fn milli(amount: f64, i: usize, round: impl Fn(f64) -> f64) -> u64 {
    let exact = amount * TOKENS_PER_UNIT[i] * MILLI_PER_TOKEN;
    let nearest = exact.round();
    if (exact - nearest).abs() < 1e-6 {
        nearest as u64
    } else {
        round(exact) as u64
    }
}

pub fn vectors(all: &[Vec<f64>], field: &str) -> Result<(), Unusable> {
    if all.is_empty() {
        return Err(Unusable::new(field, "must have a vector for each replica"));
    }
    for (v, one) in all.iter().enumerate() {
        vector(one, &format!("{field}[{v}]"))?;
    }
    Ok(())
}

pub fn vector(amounts: &[f64], field: &str) -> Result<(), Unusable> {
    if amounts.len() != RESOURCES.len() {
        let problem = format!(
            "has {} amounts; {} are needed: {RESOURCES:?}",
            amounts.len(),
            RESOURCES.len()
        );
        return Err(Unusable::new(field, problem));
    }
    for (i, amount) in amounts.iter().enumerate() {
        let field = || format!("{field}[{i}] ({})", RESOURCES[i]);
        if !amount.is_finite() {
            return Err(Unusable::new(field(), "must be finite"));
        }
        if *amount < 0.0 {
            return Err(Unusable::new(field(), format!("{amount} is negative")));
        }
        if *amount > amount_max(i) {
            return Err(Unusable::new(
                field(),
                format!("must be at most {:e}", amount_max(i)),
            ));
        }
    }
    Ok(())
}
