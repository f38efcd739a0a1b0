//! Random problems.

use quorate_policies::{Flow, Problem, Project};

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Some resources may have nothing, some flows want nothing, and some want more than there is.
pub fn problem(random: &mut Random, flows_max: u64, resources_max: u64, projects: u64) -> Problem {
    let resources = 1 + random.below(resources_max);
    let flows = 1 + random.below(flows_max);
    let capacity = |random: &mut Random| match random.below(12) {
        0 => 0,
        _ => 1_000_000 + random.below(9_000_000),
    };
    let capacity: Vec<u64> = (0..resources).map(|_| capacity(random)).collect();
    let projects: Vec<Project> = (0..projects)
        .map(|_| Project {
            weight: [1.0, 1.0, 2.0, 3.5][random.below(4) as usize],
            price: 1 + random.below(9),
        })
        .collect();
    let flow = |random: &mut Random| Flow {
        project: random.below(projects.len() as u64) as usize,
        weight: [1.0, 1.0, 2.0, 0.3][random.below(4) as usize],
        demand: demand(random, resources),
    };
    let flows = (0..flows).map(|_| flow(random)).collect();
    Problem::new(capacity, projects.clone(), flows).expect("it is valid")
}

fn demand(random: &mut Random, resources: u64) -> Vec<(usize, u64)> {
    let mut demand = Vec::new();
    for resource in 0..resources as usize {
        if random.below(3) > 0 {
            demand.push((
                resource,
                [0, 5_000, 1_000_000, 8_000_000][random.below(4) as usize] * random.below(3),
            ));
        }
    }
    demand
}
