//! The cost of requests to a server, and the budget that fills a group's token buckets (Filo §3 "rate limiters", Pulsar
//! §3 "virtual request cost").

use serde::{Deserialize, Serialize};

use crate::limits::SINGLE_ENTRY_APPENDS_PER_S;

/// Tokens of a core-second, a byte and an operation: nanoseconds of CPU, bytes, thousandths of operations.
pub const TOKENS_PER_UNIT: [f64; 3] = [1e9, 1.0, 1e3];
/// Token buckets and grants between servers are counted in thousandths of tokens.
pub const MILLI_PER_TOKEN: f64 = 1e3;

/// Equal parts of a server's resources, in thousandths of resource tokens: a microsecond of a core, 300 bytes of network, a
/// tenth of a storage operation. A server with four cores and the default capacity of the rest has about as much of each. One
/// token of a project's guarantee is that much at one replica (`docs/internals/allocation.md`, "Guarantees of projects").
pub const GUARANTEE_TOKEN_MILLI: [u64; 3] = [1_000_000, 300_000, 100_000];

/// One operation of storage.
const ONE_OPERATION_MILLI: u64 = 1_000_000;

/// Amounts of each resource; as a rate, per second. A server's capacity, a replica's demand.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResourceVector {
    /// Cores.
    pub cpu: f64,
    /// Bytes in plus bytes out, each second.
    pub network_bytes_per_s: f64,
    /// Operations of at most 8 KiB, each second.
    pub storage_io_per_s: f64,
}

/// The names of the components of [`ResourceVector`], in order.
pub const RESOURCES: [&str; 3] = ["cpu", "network", "storage_io"];

impl ResourceVector {
    pub fn new(cpu: f64, network_bytes_per_s: f64, storage_io_per_s: f64) -> Self {
        Self {
            cpu,
            network_bytes_per_s,
            storage_io_per_s,
        }
    }

    pub fn to_array(self) -> [f64; 3] {
        [self.cpu, self.network_bytes_per_s, self.storage_io_per_s]
    }

    pub fn from_array([cpu, network_bytes_per_s, storage_io_per_s]: [f64; 3]) -> Self {
        Self {
            cpu,
            network_bytes_per_s,
            storage_io_per_s,
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self::from_array(std::array::from_fn(|i| self.to_array()[i] + other.to_array()[i]))
    }

    pub fn minus(self, other: Self) -> Self {
        Self::from_array(std::array::from_fn(|i| self.to_array()[i] - other.to_array()[i]))
    }

    pub fn times(self, factor: f64) -> Self {
        Self::from_array(self.to_array().map(|x| x * factor))
    }

    /// Every component finite and not negative.
    pub fn is_valid(self) -> bool {
        self.to_array().iter().all(|x| x.is_finite() && *x >= 0.0)
    }
}

/// The cost of one entry in a full batch or page, as tokens: `fixed + per_byte · entry bytes` of each resource. An append
/// and a read have such a cost each (Pulsar §3: virtual cost functions).
///
/// Tokens of CPU are nanoseconds, of network bytes, of storage IO thousandths of operations. All are counted in
/// thousandths, so that buckets are exact integers and a byte has a price in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCost {
    pub fixed_milli: [u64; 3],
    pub per_byte_milli: [u64; 3],
}

impl EntryCost {
    /// Cost of `entries` entries with `bytes` bytes together.
    pub fn of(&self, entries: u64, bytes: u64) -> [u64; 3] {
        std::array::from_fn(|i| {
            let fixed = self.fixed_milli[i].saturating_mul(entries);
            fixed.saturating_add(self.per_byte_milli[i].saturating_mul(bytes))
        })
    }
}

/// The additional cost of a batch with fewer entries than costs were measured with. A batch itself has a cost, which
/// [`EntryCost`] spreads over that many entries. Larger batches are charged as those. A page of a reader is a batch, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ShortBatch {
    /// A batch of so many entries, or more, costs as much as its entries.
    pub entries: u32,
    /// The cost of each entry that a batch lacks, in thousandths of tokens.
    pub lacking_milli: [u64; 3],
}

impl ShortBatch {
    /// The cost of a batch beside its entries.
    pub fn of(&self, entries: u64) -> [u64; 3] {
        let lacking = u64::from(self.entries).saturating_sub(entries);
        self.lacking_milli.map(|milli| milli.saturating_mul(lacking))
    }

    /// Whether batches cost nothing themselves: the profile is an estimate, or older than that measurement.
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

/// Charges for batches, and the rates that fill a group's buckets: the one rule of heads and clients
/// (`sdk/contract/pacing.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charges {
    /// The SLA's rate: at this rate the buckets get `tokens_per_s_milli`.
    pub rate_per_s: u64,
    pub tokens_per_s_milli: [u64; 3],
    pub cost: EntryCost,
    pub short_batch: ShortBatch,
}

impl Charges {
    /// Tokens of a batch of `entries` entries with `bytes` bytes together.
    pub fn batch_milli(&self, entries: u64, bytes: u64) -> [u64; 3] {
        batch_milli(&self.cost, &self.short_batch, entries, bytes)
    }
}

fn batch_milli(cost: &EntryCost, short: &ShortBatch, entries: u64, bytes: u64) -> [u64; 3] {
    let (own, beside) = (cost.of(entries, bytes), short.of(entries));
    std::array::from_fn(|i| own[i].saturating_add(beside[i]))
}

/// The rates of a group's token buckets, one per resource, and its cost function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// The SLA's rate: requests of the declared size each second.
    pub rate_per_s: u64,
    pub request_size_bytes: u32,
    pub cost: EntryCost,
    /// Tokens added each second (thousandths), per resource. The bucket holds one second of it.
    pub tokens_per_s_milli: [u64; 3],
    /// Cost of one request of the declared size to each replica, head first, in thousandths of tokens. Empty if it is not
    /// known: then as much as at the head.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_milli: Vec<[u64; 3]>,
    /// Reservation at each replica, head first, in thousandths of tokens each second: for requests of the declared size in
    /// full batches, and for short batches. Empty where nothing is reserved for short batches, and in configurations of
    /// earlier versions: then [`Budget::reserved_per_s`] requests everywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replica_reserved_milli: Vec<[u64; 3]>,
    /// Absent in configurations of earlier versions: then batches cost nothing themselves.
    #[serde(default, skip_serializing_if = "ShortBatch::is_free")]
    pub short_batch: ShortBatch,
    /// Absent in configurations of earlier versions: then a read costs what its bytes cost, and none is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Box<ReadBudget>>,
}

/// The cost of reading, and the reservation for it, at each replica of a group: clients may read from any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBudget {
    /// Entries of the declared size each second at one replica; 0: reads are served from what is spare.
    pub rate_per_s: u64,
    /// Reserved at each replica, in thousandths of tokens each second.
    pub reserved_milli: [u64; 3],
    /// The cost of entries in memory.
    pub cost: EntryCost,
    /// A page with fewer entries than costs were measured with.
    pub short_page: ShortBatch,
    /// Beside that, of entries that are read from the disk first.
    pub from_disk: EntryCost,
}

impl ReadBudget {
    /// Tokens of a page of `entries` entries with `bytes` bytes together, in memory.
    pub fn page_milli(&self, entries: u64, bytes: u64) -> [u64; 3] {
        batch_milli(&self.cost, &self.short_page, entries, bytes)
    }

    /// Tokens of a page that is read from the disk first: at least one operation of it.
    pub fn disk_page_milli(&self, entries: u64, bytes: u64) -> [u64; 3] {
        let (page, disk) = (
            self.page_milli(entries, bytes),
            self.from_disk_milli(entries, bytes),
        );
        std::array::from_fn(|i| page[i].saturating_add(disk[i]))
    }

    /// The part of that which is spent before the page is there.
    pub fn from_disk_milli(&self, entries: u64, bytes: u64) -> [u64; 3] {
        let [cpu, network, storage] = self.from_disk.of(entries, bytes);
        [cpu, network, storage.max(ONE_OPERATION_MILLI)]
    }
}

impl Budget {
    /// A budget in which exactly `rate_per_s` requests of the declared size pass each second.
    pub fn for_rate(rate_per_s: u64, request_size_bytes: u32, cost: EntryCost) -> Self {
        let one = cost.of(1, u64::from(request_size_bytes));
        Self {
            rate_per_s,
            request_size_bytes,
            cost,
            tokens_per_s_milli: one.map(|c| c.saturating_mul(rate_per_s)),
            replica_milli: Vec::new(),
            replica_reserved_milli: Vec::new(),
            short_batch: ShortBatch::default(),
            reads: None,
        }
    }

    /// Tokens that a batch of `entries` entries with `bytes` bytes together takes from the buckets.
    pub fn batch_milli(&self, entries: u64, bytes: u64) -> [u64; 3] {
        batch_milli(&self.cost, &self.short_batch, entries, bytes)
    }

    /// The part of the budget that clients need to take as much as the head does.
    pub fn charges(&self) -> Charges {
        Charges {
            rate_per_s: self.rate_per_s,
            tokens_per_s_milli: self.tokens_per_s_milli,
            cost: self.cost,
            short_batch: self.short_batch,
        }
    }

    /// Reservation at the head, in requests of the declared size that come in full batches. The reservation for short
    /// batches is part of it. So many requests pass in the resource with the largest reservation. Less of the others is
    /// reserved, and less at other replicas: [`Budget::reserved_milli_at`].
    pub fn reserved_per_s(&self) -> u64 {
        self.requests_of(self.tokens_per_s_milli).max(self.rate_per_s)
    }

    /// Cost of one request of the declared size to the head, in a full batch.
    pub fn request_milli(&self) -> [u64; 3] {
        self.cost.of(1, u64::from(self.request_size_bytes))
    }

    /// Cost of the same request to the replica at a position of the chain. A chain that lost replicas is charged by
    /// position as if it were whole, as placement does.
    pub fn request_milli_at(&self, position: usize) -> [u64; 3] {
        match self.replica_milli.get(position) {
            Some(cost) => *cost,
            None => self.request_milli(),
        }
    }

    /// Reservation at the replica at a position of the chain, in thousandths of tokens each second.
    pub fn reserved_milli_at(&self, position: usize) -> [u64; 3] {
        match self.replica_reserved_milli.get(position) {
            Some(reserved) => *reserved,
            None => {
                let requests = self.reserved_per_s();
                self.request_milli_at(position)
                    .map(|milli| milli.saturating_mul(requests))
            }
        }
    }

    /// Reservation for reads at each replica, in thousandths of tokens each second.
    pub fn reads_reserved_milli(&self) -> [u64; 3] {
        self.reads.as_ref().map_or([0; 3], |reads| reads.reserved_milli)
    }

    /// The most that a request above the reservation costs the replica at a position of the chain. The head counts requests
    /// by the cost of their batches: a single-entry batch is several requests. At another replica such a batch may cost
    /// more than as many requests in a full batch; the greater of the two counts. Larger batches lie between.
    pub fn burst_milli_at(&self, position: usize) -> [u64; 3] {
        let full = self.request_milli_at(position);
        let Some(reserved) = self.replica_reserved_milli.get(position) else {
            return full;
        };
        let alone_per_s = self.rate_per_s.clamp(1, SINGLE_ENTRY_APPENDS_PER_S);
        let alone = |i: usize| {
            let beside = reserved[i].saturating_sub(full[i].saturating_mul(self.rate_per_s));
            u128::from(full[i]) + u128::from(beside.div_ceil(alone_per_s))
        };
        let (head, beside) = (self.request_milli(), self.short_batch.of(1));
        let ratio = |i: usize| (u128::from(head[i]) + u128::from(beside[i]), u128::from(head[i]));
        // The head limits a group in the resource in which a single-entry batch is most requests.
        let (alone_head, full_head) = (0..3)
            .map(ratio)
            .filter(|(_, full)| *full > 0)
            .max_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)))
            .unwrap_or((1, 1));
        std::array::from_fn(|i| {
            let most = (alone(i) * full_head).div_ceil(alone_head);
            u64::try_from(most).unwrap_or(u64::MAX).max(full[i])
        })
    }

    /// Tokens of a guarantee that a request of the declared size costs, in thousandths; at least one. At each replica the
    /// dearest resource counts, and replicas add up: Pulsar's virtual cost function (§3).
    pub fn guarantee_tokens_milli(&self, degree: usize) -> u64 {
        let at = |position: usize| {
            let cost = self.burst_milli_at(position);
            let tokens = (0..3).map(|i| u128::from(cost[i]) * 1_000 / u128::from(GUARANTEE_TOKEN_MILLI[i]));
            tokens.max().unwrap_or(0)
        };
        let sum: u128 = (0..degree).map(at).sum();
        u64::try_from(sum).unwrap_or(u64::MAX).max(1)
    }

    /// Tokens of a guarantee that the reserved rate is worth, rounded up.
    pub fn reserved_guarantee_tokens(&self, degree: usize) -> u64 {
        let milli = u128::from(self.rate_per_s) * u128::from(self.guarantee_tokens_milli(degree));
        u64::try_from(milli.div_ceil(1_000)).unwrap_or(u64::MAX)
    }

    /// Requests of the declared size each second that so many tokens of a guarantee are worth.
    pub fn requests_of_guarantee(&self, tokens_per_s: u64, degree: usize) -> u64 {
        let milli = u128::from(tokens_per_s) * 1_000 / u128::from(self.guarantee_tokens_milli(degree));
        u64::try_from(milli).unwrap_or(u64::MAX)
    }

    /// The same budget with so many more requests each second at the head, while a project's guarantee gives them to it.
    pub fn with_more(&self, per_s: u64) -> Self {
        let one = self.request_milli();
        let more = |i: usize| self.tokens_per_s_milli[i].saturating_add(one[i].saturating_mul(per_s));
        Self {
            rate_per_s: self.rate_per_s.saturating_add(per_s),
            tokens_per_s_milli: std::array::from_fn(more),
            ..self.clone()
        }
    }

    /// Requests of the declared size that cost the head as much as the given tokens, in the dearest resource.
    pub fn requests_of(&self, milli: [u64; 3]) -> u64 {
        let one = self.request_milli();
        let requests = |i: usize| if one[i] == 0 { 0 } else { milli[i].div_ceil(one[i]) };
        (0..3).map(requests).max().unwrap_or(0)
    }
}
