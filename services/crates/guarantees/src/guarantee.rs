//! The promise to a project, and how its owner shares it.

use std::collections::BTreeSet;

use quorate_policies::Policy;
use quorate_types::GroupId;
use quorate_types::limits::{
    GUARANTEE_CLASS_CHARS_MAX, GUARANTEE_POLICY_GROUPS_MAX, GUARANTEE_TOKENS_PER_S_MAX, GUARANTEE_WEIGHT_MAX,
};
use serde::{Deserialize, Serialize};

/// Tokens are those of [`quorate_types::cost::GUARANTEE_TOKEN_MILLI`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// Tokens each second that any group of the project may use, beside the rates of the groups' own SLAs.
    pub shared_tokens_per_s: u64,
    /// Tokens each second that all groups together may use, their own rates and idle capacity of others included; `None`:
    /// no limit but what is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_s: Option<u64>,
    #[serde(default)]
    pub policy: LocalPolicy,
}

/// How the shared tokens are divided among the groups that want them (Pulsar §4.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalPolicy {
    #[serde(default)]
    pub name: Policy,
    /// Groups that differ from the others, which have weight 1 and no class. First fit serves these first, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<PolicyGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyGroup {
    pub group_id: GroupId,
    /// For DRF the proportion of its share, for maximum revenue the worth of a token.
    #[serde(default = "one")]
    pub weight: u32,
    /// Hierarchical DRF gives equal parts to classes, and divides each among its groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

fn one() -> u32 {
    1
}

impl Guarantee {
    /// The first field at fault and why, whatever the project's groups are.
    pub fn validate(&self) -> Result<(), (String, String)> {
        let most = GUARANTEE_TOKENS_PER_S_MAX;
        let at_fault = |field: &str, problem: String| Err((field.to_string(), problem));
        if self.shared_tokens_per_s > most {
            return at_fault("shared_tokens_per_s", format!("must be 0 to {most}"));
        }
        match self.max_tokens_per_s {
            Some(max) if max > most || max < self.shared_tokens_per_s.max(1) => {
                let least = self.shared_tokens_per_s.max(1);
                return at_fault("max_tokens_per_s", format!("must be {least} to {most}, or null"));
            }
            None if self.shared_tokens_per_s == 0 => {
                let problem = "must be above 0 where there is no max_tokens_per_s: this promises nothing";
                return at_fault("shared_tokens_per_s", problem.into());
            }
            _ => {}
        }
        self.policy.validate()
    }
}

impl LocalPolicy {
    fn validate(&self) -> Result<(), (String, String)> {
        let at_fault = |field: String, problem: String| Err((field, problem));
        if self.groups.len() > GUARANTEE_POLICY_GROUPS_MAX {
            let problem = format!("must name at most {GUARANTEE_POLICY_GROUPS_MAX} groups");
            return at_fault("policy.groups".into(), problem);
        }
        let mut seen = BTreeSet::new();
        for (at, group) in self.groups.iter().enumerate() {
            let field = |name: &str| format!("policy.groups.{at}.{name}");
            if !(1..=GUARANTEE_WEIGHT_MAX).contains(&group.weight) {
                let problem = format!("must be a whole number from 1 to {GUARANTEE_WEIGHT_MAX}");
                return at_fault(field("weight"), problem);
            }
            if !seen.insert(group.group_id) {
                return at_fault(field("group_id"), "names a group that is named before".into());
            }
            let chars = group.class.as_ref().map(|class| class.chars().count());
            if chars.is_some_and(|chars| !(1..=GUARANTEE_CLASS_CHARS_MAX).contains(&chars)) {
                let problem = format!("must have 1 to {GUARANTEE_CLASS_CHARS_MAX} characters");
                return at_fault(field("class"), problem);
            }
        }
        Ok(())
    }

    /// The first group named that is not among these: its position, and its id.
    pub fn foreign(&self, is_own: impl Fn(GroupId) -> bool) -> Option<(usize, GroupId)> {
        let mut named = self.groups.iter().map(|group| group.group_id).enumerate();
        named.find(|(_, group_id)| !is_own(*group_id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn id(n: u128) -> GroupId {
        GroupId(Uuid::from_u128(n))
    }

    fn guarantee(fields: serde_json::Value) -> Guarantee {
        serde_json::from_value(fields).expect("it is a guarantee")
    }

    #[test]
    fn faults_are_named_with_their_fields() {
        let group = |n: u128, weight: u32| json!({"group_id": id(n), "weight": weight});
        for (field, fields) in [
            ("shared_tokens_per_s", json!({"shared_tokens_per_s": 0})),
            ("shared_tokens_per_s", json!({"shared_tokens_per_s": u64::MAX})),
            (
                "max_tokens_per_s",
                json!({"shared_tokens_per_s": 5, "max_tokens_per_s": 4}),
            ),
            (
                "max_tokens_per_s",
                json!({"shared_tokens_per_s": 0, "max_tokens_per_s": 0}),
            ),
            (
                "policy.groups.1.weight",
                json!({"shared_tokens_per_s": 5, "policy": {"groups": [group(1, 1), group(2, 0)]}}),
            ),
            (
                "policy.groups.1.group_id",
                json!({"shared_tokens_per_s": 5, "policy": {"groups": [group(1, 1), group(1, 2)]}}),
            ),
            (
                "policy.groups.0.class",
                json!({"shared_tokens_per_s": 5, "policy": {"groups": [{"group_id": id(1), "class": ""}]}}),
            ),
        ] {
            assert_eq!(guarantee(fields).validate().unwrap_err().0, field);
        }
        let fine = json!({"shared_tokens_per_s": 5, "max_tokens_per_s": 5,
            "policy": {"name": "first_fit", "groups": [group(1, 7)]}});
        assert_eq!(guarantee(fine).validate(), Ok(()));
        assert_eq!(
            guarantee(json!({"shared_tokens_per_s": 0, "max_tokens_per_s": 9})).validate(),
            Ok(())
        );
    }

    #[test]
    fn weights_are_whole_numbers_and_policies_have_names() {
        for policy in [
            json!({"groups": [{"group_id": id(1), "weight": 0.5}]}),
            json!({"groups": [{"group_id": id(1), "weight": "NaN"}]}),
            json!({"name": "random"}),
        ] {
            let fields = json!({"shared_tokens_per_s": 5, "policy": policy});
            assert!(serde_json::from_value::<Guarantee>(fields).is_err());
        }
    }

    #[test]
    fn a_foreign_group_is_found() {
        let policy = LocalPolicy {
            name: Policy::Drf,
            groups: [1, 2]
                .map(|n| PolicyGroup {
                    group_id: id(n),
                    weight: 1,
                    class: None,
                })
                .to_vec(),
        };
        assert_eq!(policy.foreign(|_| true), None);
        assert_eq!(policy.foreign(|group| group == id(1)), Some((1, id(2))));
    }
}
