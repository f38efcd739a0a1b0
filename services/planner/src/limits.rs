//! The largest amounts and rates of an instance: what the program refuses beyond, and what the schema says.

use quorate_types::cost::{RESOURCES, TOKENS_PER_UNIT};
use schemars::{Schema, SchemaGenerator, json_schema};

/// Amounts up to here are exact in doubles and sum without overflow over any fleet.
const TOKENS_MAX: f64 = 1e15;
pub const RATE_MAX_PER_S: u64 = 1_000_000_000_000;

/// The largest amount of a resource, in the unit of the instance: cores, bytes, operations.
pub fn amount_max(resource: usize) -> f64 {
    TOKENS_MAX / TOKENS_PER_UNIT[resource]
}

/// One amount of each resource.
pub fn amounts(_: &mut SchemaGenerator) -> Schema {
    let of = |resource: usize| {
        let most = amount_max(resource);
        json_schema!({"type": "number", "title": RESOURCES[resource], "minimum": 0.0, "maximum": most})
    };
    let each: Vec<Schema> = (0..RESOURCES.len()).map(of).collect();
    json_schema!({"type": "array", "prefixItems": each, "minItems": RESOURCES.len(), "maxItems": RESOURCES.len()})
}

/// One vector of amounts for each replica, or none at all.
pub fn replica_amounts(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["array", "null"], "items": amounts(generator), "minItems": 1})
}
