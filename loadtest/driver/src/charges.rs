//! Charges of a head and of the SLA's ideal server for batches, to compare clients with (`make sla ONLY=charges`).

use std::io::Read;

use quorate_qos::{Admission, QueueLimits, Reservation};
use quorate_types::Micros;
use quorate_types::cost::{Budget, Charges};
use serde::{Deserialize, Serialize};

/// Between offers: long enough for full buckets, whatever debt the one before left.
const APART_US: Micros = 100_000_000_000;

#[derive(Deserialize)]
struct Trace {
    charges: Charges,
    /// Entries of each batch, and their bytes together.
    batches: Vec<(u64, u64)>,
}

#[derive(Serialize)]
struct Charged {
    /// Thousandths of tokens that the head takes, per resource.
    head_milli: Vec<[u64; 3]>,
    /// Microseconds for which the reservation holds the batch back when its buckets are empty.
    sla_wait_us: Vec<Micros>,
}

/// Reads traces from standard input, and prints an answer to each, as JSON.
pub(crate) fn answer() -> Result<(), String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| format!("standard input: {error}"))?;
    let traces: Vec<Trace> =
        serde_json::from_str(&text).map_err(|error| format!("the traces are malformed: {error}"))?;
    let charged: Vec<Charged> = traces.iter().map(charge).collect();
    let json = serde_json::to_string(&charged).map_err(|error| error.to_string())?;
    println!("{json}");
    Ok(())
}

fn charge(trace: &Trace) -> Charged {
    let budget = budget_of(&trace.charges);
    let mut head = Admission::new(&budget, QueueLimits::default(), 0);
    let (mut head_milli, mut sla_wait_us) = (Vec::new(), Vec::new());
    for (number, (entries, bytes)) in trace.batches.iter().enumerate() {
        let now = (number as Micros + 1) * APART_US;
        let cost = budget.batch_milli(*entries, *bytes);
        let before = head.flow();
        let _admitted = head.offer(now, (), 1, cost, *bytes, Micros::MAX);
        head_milli.push(head.flow().since(&before).offered);
        let mut ideal = Reservation::new(&budget, 0);
        let start = |ideal: &mut Reservation, cost| {
            ideal.offer(0, cost, *bytes, Micros::MAX, &QueueLimits::default())
        };
        let first = start(&mut ideal, trace.charges.tokens_per_s_milli);
        assert_eq!(first, Some(0), "full buckets hold a second");
        sla_wait_us.push(start(&mut ideal, cost).expect("it may wait for ever"));
    }
    Charged {
        head_milli,
        sla_wait_us,
    }
}

fn budget_of(charges: &Charges) -> Budget {
    Budget {
        tokens_per_s_milli: charges.tokens_per_s_milli,
        short_batch: charges.short_batch,
        ..Budget::for_rate(charges.rate_per_s, 64, charges.cost)
    }
}
