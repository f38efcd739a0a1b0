//! Tokens among the groups of a project, by its owner's policy: `A = MRA(D, W, C)` with one resource, the tokens.

use std::collections::{BTreeMap, HashMap};

use quorate_policies::{Flow, Policy, Problem, Project};
use quorate_types::GroupId;

use crate::guarantee::{LocalPolicy, PolicyGroup};

/// Tokens/s that a group wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    pub group_id: GroupId,
    pub tokens_per_s: u64,
}

/// The tokens/s of each, in the order of `wants`; their sum is at most `tokens_per_s`. Tokens that nobody wants go to all of
/// them in the proportion of their weights, so that a group which begins has some at once.
pub fn divide(policy: &LocalPolicy, tokens_per_s: u64, wants: &[Want]) -> Vec<u64> {
    let terms = Terms::of(policy);
    let mut given = wanted_part(policy.name, &terms, tokens_per_s, wants);
    let weights: Vec<u64> = wants
        .iter()
        .map(|want| u64::from(terms.weight(want.group_id)))
        .collect();
    let left = tokens_per_s - given.iter().sum::<u64>();
    for (given, more) in given.iter_mut().zip(in_proportion(left, &weights)) {
        *given += more;
    }
    given
}

/// As much as each wants and the policy gives.
fn wanted_part(policy: Policy, terms: &Terms<'_>, tokens_per_s: u64, wants: &[Want]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by_key(|at| (terms.place(wants[*at].group_id), *at));
    let mut parts = Parts::default();
    let flow = |at: &usize| {
        let group_id = wants[*at].group_id;
        Flow {
            project: parts.number(policy, terms, group_id),
            weight: f64::from(terms.weight(group_id)),
            demand: vec![(0, wants[*at].tokens_per_s)],
        }
    };
    let flows: Vec<Flow> = order.iter().map(flow).collect();
    let projects = parts.prices.iter().map(|price| Project {
        weight: 1.0,
        price: *price,
    });
    let problem = Problem::new(vec![tokens_per_s], projects.collect(), flows).expect("weights are above 0");
    let shared = policy.share(&problem);
    let mut given = vec![0; wants.len()];
    let mut left = tokens_per_s;
    for (f, at) in order.into_iter().enumerate() {
        // Rounding never gives more than there is.
        given[at] = shared.tokens(&problem, f).next().unwrap_or(0).min(left);
        left -= given[at];
    }
    given
}

/// Whole tokens in the proportion of the weights, rounded down.
fn in_proportion(tokens_per_s: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().copied().map(u128::from).sum();
    let part = |weight: &u64| u128::from(tokens_per_s) * u128::from(*weight) / sum.max(1);
    let parts = weights.iter().map(part);
    parts
        .map(|part| u64::try_from(part).expect("a part of the whole"))
        .collect()
}

/// The groups that a policy names, to be looked up.
struct Terms<'a> {
    named: HashMap<GroupId, (usize, &'a PolicyGroup)>,
}

impl<'a> Terms<'a> {
    fn of(policy: &'a LocalPolicy) -> Self {
        let named = policy.groups.iter().enumerate();
        Self {
            named: named
                .map(|(place, group)| (group.group_id, (place, group)))
                .collect(),
        }
    }

    /// Named groups come first.
    fn place(&self, group_id: GroupId) -> usize {
        self.named.get(&group_id).map_or(usize::MAX, |(place, _)| *place)
    }

    fn weight(&self, group_id: GroupId) -> u32 {
        self.named.get(&group_id).map_or(1, |(_, group)| group.weight)
    }

    fn class(&self, group_id: GroupId) -> Option<&'a str> {
        self.named.get(&group_id)?.1.class.as_deref()
    }
}

/// Projects, as policies call them: classes for hierarchical DRF, groups of one worth for maximum revenue, else one for all.
#[derive(Default)]
struct Parts<'a> {
    numbers: BTreeMap<(Option<&'a str>, u32), usize>,
    prices: Vec<u64>,
}

impl<'a> Parts<'a> {
    fn number(&mut self, policy: Policy, terms: &Terms<'a>, group_id: GroupId) -> usize {
        let key = match policy {
            Policy::HierarchicalDrf => (terms.class(group_id), 1),
            Policy::MaximumRevenue => (None, terms.weight(group_id)),
            Policy::Drf | Policy::FirstFit => (None, 1),
        };
        let next = self.numbers.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == self.prices.len() {
            self.prices.push(u64::from(key.1));
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn id(n: usize) -> GroupId {
        GroupId(Uuid::from_u128(n as u128))
    }

    fn policy(name: Policy, groups: &[(usize, u32, Option<&str>)]) -> LocalPolicy {
        let group = |(n, weight, class): &(usize, u32, Option<&str>)| PolicyGroup {
            group_id: id(*n),
            weight: *weight,
            class: class.map(str::to_string),
        };
        LocalPolicy {
            name,
            groups: groups.iter().map(group).collect(),
        }
    }

    fn given(policy: &LocalPolicy, tokens_per_s: u64, wants: &[u64]) -> Vec<u64> {
        let wants = wants.iter().enumerate();
        let wants: Vec<Want> = wants
            .map(|(n, tokens_per_s)| Want {
                group_id: id(n),
                tokens_per_s: *tokens_per_s,
            })
            .collect();
        divide(policy, tokens_per_s, &wants)
    }

    fn near(given: &[u64], expected: &[u64]) {
        let near = |(given, expected): (&u64, &u64)| given.abs_diff(*expected) <= 2;
        assert!(
            given.iter().zip(expected).all(near),
            "{given:?}, and not {expected:?}"
        );
    }

    #[test]
    fn each_policy_divides_in_its_way() {
        let drf = policy(Policy::Drf, &[(0, 3, None)]);
        near(&given(&drf, 1_000, &[5_000, 5_000]), &[750, 250]);
        near(&given(&drf, 1_000, &[100, 5_000]), &[100, 900]);
        let first = policy(Policy::FirstFit, &[(2, 1, None), (0, 1, None)]);
        near(&given(&first, 1_000, &[600, 600, 600]), &[400, 0, 600]);
        let worth = policy(Policy::MaximumRevenue, &[(1, 9, None), (2, 2, None)]);
        near(&given(&worth, 1_000, &[600, 600, 600]), &[0, 600, 400]);
        let classes = [(0, 1, Some("a")), (1, 1, Some("a")), (2, 1, Some("b"))];
        let levels = policy(Policy::HierarchicalDrf, &classes);
        near(&given(&levels, 1_000, &[900, 900, 900]), &[250, 250, 500]);
    }

    #[test]
    fn tokens_that_nobody_wants_are_given_out_by_weight() {
        let weighted = policy(Policy::FirstFit, &[(1, 4, None)]);
        near(&given(&weighted, 1_000, &[0, 0]), &[200, 800]);
        near(&given(&weighted, 1_000, &[500, 0]), &[600, 400]);
        assert_eq!(given(&weighted, 0, &[500, 0]), [0, 0]);
        assert_eq!(given(&weighted, 1_000, &[]), [0; 0]);
    }

    proptest! {
        #[test]
        fn no_policy_gives_out_more_than_there_is_or_leaves_a_want_unmet_beside_unwanted_tokens(
            tokens_per_s in 0u64..2_000_000,
            wants in prop::collection::vec(0u64..1_000_000, 1..12),
            weights in prop::collection::vec(1u32..1_000, 12),
            kind in 0usize..4,
        ) {
            let named: Vec<_> = (0..wants.len() / 2)
                .map(|n| (n, weights[n], (n % 3 == 0).then_some("a")))
                .collect();
            let policy = policy(Policy::ALL[kind], &named);
            let given = given(&policy, tokens_per_s, &wants);
            prop_assert!(given.iter().sum::<u64>() <= tokens_per_s);
            prop_assert!(given.iter().sum::<u64>() + 2 * wants.len() as u64 + 2 >= tokens_per_s, "all is given out");
            let unmet = given.iter().zip(&wants).any(|(given, want)| given + 3 < *want);
            let unwanted = given.iter().zip(&wants).map(|(given, want)| given.saturating_sub(*want)).sum::<u64>();
            prop_assert!(!unmet || unwanted <= 3 * wants.len() as u64, "{given:?} of {wants:?}");
        }
    }
}
