//! The status of the coordinators for people.

use serde_json::Value;

const HEAD: [&str; 8] = [
    "member", "role", "vote", "lacks", "heard", "by", "http", "members",
];

/// `view`: of the one that leads, or of any other.
pub fn status(view: &Value) -> String {
    let mut rows = vec![HEAD.map(String::from)];
    let leader = view["leader"].as_str();
    let end = view["last_position"].as_u64().unwrap_or(0);
    for member in view["members"].as_array().into_iter().flatten() {
        let text = |field: &str| member[field].as_str().unwrap_or("").to_string();
        let leads = leader.is_some() && member["member"].as_str() == leader;
        let lacks = member["durable_position"]
            .as_u64()
            .map(|at| end.saturating_sub(at));
        let heard = match member["silent_ms"].as_u64() {
            _ if leads => "–".to_string(),
            Some(ms) if ms < 1_000 => "now".to_string(),
            Some(ms) => format!("{} s ago", ms / 1_000),
            None => "?".to_string(),
        };
        rows.push([
            text("member"),
            if leads { "leads" } else { "follows" }.to_string(),
            if member["votes"] == true { "yes" } else { "not yet" }.to_string(),
            lacks.map_or("?".to_string(), |lacks| lacks.to_string()),
            heard,
            text("transport"),
            text("http"),
            text("address"),
        ]);
    }
    let mut lines = vec![head(view, leader)];
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
        lines.push(cells.join("  ").trim_end().to_string());
    }
    lines.join("\n")
}

/// The fleet's version for people, with their next step.
pub fn fleet_version(view: &Value) -> String {
    let (version, newest) = (&view["version"], &view["newest"]);
    let waits_for = view["waits_for"].as_array().map_or(&[][..], Vec::as_slice);
    if version == newest {
        return format!("the fleet has version {version}, the newest of this release");
    }
    let mut lines = vec![match waits_for.is_empty() {
        true => format!(
            "the fleet has version {version}, and everything reads {newest}: raise it (--raise) when the release before is \
             not to come back"
        ),
        false => format!("the fleet has version {version}. Before it can be raised to {newest}:"),
    }];
    let named = waits_for.iter().filter_map(Value::as_str);
    lines.extend(named.map(|name| format!("  {name}")));
    lines.join("\n")
}

fn head(view: &Value, leader: Option<&str>) -> String {
    let (term, agreed) = (&view["term"], &view["agreed_position"]);
    match leader {
        Some(_) => format!("term {term}, {agreed} entries agreed"),
        None => format!(
            "term {term}: nobody leads. A majority of those with a vote must run, and reach one another"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_says_who_leads_and_who_lags() {
        let view = json!({
            "member": "a1", "role": "leader", "term": 7, "leader": "a1", "last_position": 120, "agreed_position": 118,
            "members": [
                {"member": "a1", "address": "10.0.0.1:7402", "http": "10.0.0.1:7401", "votes": true,
                 "durable_position": 120, "silent_ms": null},
                {"member": "b2", "address": "10.0.0.2:7402", "http": "10.0.0.2:7401", "votes": false,
                 "transport": "tcp", "durable_position": 90, "silent_ms": 4_200},
            ],
        });
        assert_eq!(
            status(&view),
            "term 7, 118 entries agreed\n\
             member  role     vote     lacks  heard    by   http           members\n\
             a1      leads    yes      0      –             10.0.0.1:7401  10.0.0.1:7402\n\
             b2      follows  not yet  30     4 s ago  tcp  10.0.0.2:7401  10.0.0.2:7402"
        );
        let leaderless =
            json!({"term": 8, "leader": null, "members": [], "last_position": 1, "agreed_position": 0});
        assert!(status(&leaderless).contains("nobody leads"));
    }

    #[test]
    fn a_fleet_s_version_comes_with_the_next_step() {
        let of =
            |waits_for: &[&str]| fleet_version(&json!({"version": 1, "newest": 2, "waits_for": waits_for}));
        assert!(of(&[]).contains("--raise"));
        let behind = of(&["server 3 (s3) reads version 1: upgrade it"]);
        assert!(behind.ends_with("raised to 2:\n  server 3 (s3) reads version 1: upgrade it"));
        let newest = fleet_version(&json!({"version": 2, "newest": 2, "waits_for": []}));
        assert_eq!(newest, "the fleet has version 2, the newest of this release");
    }
}
