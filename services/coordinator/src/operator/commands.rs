//! The commands, each from its call to its last line.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::alone::lead_alone;
use super::backup::{backup, restore};
use super::client::{CallError, Client};
use super::options::{Command, Operator};
use super::table;
use crate::exit::{Failure, FailureCode};

const LOOK_EVERY: Duration = Duration::from_millis(300);
/// An election takes half a second.
const FIND_LEADER: Duration = Duration::from_secs(10);
/// A member that was heard this long ago counts as running.
const HEARD_MS_MAX: u64 = 2_000;
const QUORUM: &str = "/v1/quorum";

pub async fn run(operator: Operator) -> Result<(), Failure> {
    match operator.command {
        Command::Status { access, json } => status(&mut Client::new(&access)?, json).await,
        Command::StepDown { access, to } => step_down(&mut Client::new(&access)?, to).await,
        Command::Replace {
            access,
            old,
            timeout_s,
        } => replace(&mut Client::new(&access)?, &old, Duration::from_secs(timeout_s)).await,
        Command::LeadAlone {
            data_dir,
            the_others_are_lost,
        } => lead_alone(&data_dir, the_others_are_lost),
        Command::Backup { data_dir, to, once } => backup(&data_dir, &to, once).await,
        Command::Restore { from, data_dir } => restore(&from, &data_dir),
        Command::FleetVersion { access, raise } => fleet_version(&Client::new(&access)?, raise).await,
        Command::Remove { access, member } => remove(&mut Client::new(&access)?, &member).await,
    }
}

async fn status(client: &mut Client, as_json: bool) -> Result<(), Failure> {
    let mut views = views(client).await?;
    let leads = |view: &Value| view["role"] == "leader";
    let at = views.iter().position(leads).unwrap_or(0);
    let view = views.swap_remove(at);
    let text = match as_json {
        true => view.to_string(),
        false => table::status(&view),
    };
    println!("{text}");
    Ok(())
}

async fn step_down(client: &mut Client, to: Option<String>) -> Result<(), Failure> {
    let before = leader_view(client).await?["leader"].clone();
    let body = to.map_or_else(|| json!({}), |to| json!({"to": to}));
    let asked = client.of_leader(Method::POST, "/v1/quorum/step-down", Some(body));
    asked.await.map_err(of_call)?;
    let until = Instant::now() + Duration::from_secs(10);
    while Instant::now() < until {
        if let Ok(view) = leader_view(client).await
            && view["leader"] != before
        {
            println!("{} leads now", view["leader"].as_str().unwrap_or("another"));
            return Ok(());
        }
        sleep(LOOK_EVERY).await;
    }
    Err(not_done(
        "the same coordinator leads still: no other could take over. Look at status, and try again",
    ))
}

async fn fleet_version(client: &Client, raise: bool) -> Result<(), Failure> {
    let method = if raise { Method::POST } else { Method::GET };
    let asked = client.of_leader(method, "/v1/fleet-version", None).await;
    println!("{}", table::fleet_version(&asked.map_err(of_call)?));
    Ok(())
}

async fn remove(client: &mut Client, member: &str) -> Result<(), Failure> {
    let view = leader_view(client).await?;
    if view["leader"].as_str() == Some(member) {
        step_down(client, None).await?;
    }
    let path = format!("/v1/quorum/members/{member}");
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        match client.of_leader(Method::DELETE, &path, None).await {
            Ok(_) => break,
            // A change is under way, or the leader has just begun.
            Err(CallError::Refused { code, .. }) if code == "not_now" && Instant::now() < until => {}
            Err(error) => return Err(of_call(error)),
        }
        sleep(LOOK_EVERY).await;
    }
    println!("{member} is removed: stop it, and never start it on its disk again");
    Ok(())
}

async fn replace(client: &mut Client, old: &str, limit: Duration) -> Result<(), Failure> {
    let until = Instant::now() + limit;
    let mut said = String::new();
    loop {
        let view = leader_view(client).await?;
        match successor(&view, old) {
            Successor::Ready(member) => {
                println!("{member} has caught up, and has a vote");
                return remove(client, old).await;
            }
            Successor::Wait(why) if why != said => {
                println!("waiting: {why}");
                said = why;
            }
            Successor::Wait(_) => {}
            Successor::Never(why) => return Err(Failure::configuration(why)),
        }
        if Instant::now() > until {
            return Err(not_done(&format!(
                "{said}, and --timeout-s is over. Nothing was removed"
            )));
        }
        sleep(LOOK_EVERY).await;
    }
}

#[derive(Debug, PartialEq)]
enum Successor {
    Ready(String),
    Wait(String),
    Never(String),
}

/// The one that takes the old one's place: without the old one the number of votes must be odd again.
fn successor(view: &Value, old: &str) -> Successor {
    let members = view["members"].as_array().cloned().unwrap_or_default();
    let is_old = |member: &&Value| member["member"] == old;
    if !members.iter().any(|member| is_old(&member)) {
        return Successor::Never(format!("there is no member {old}: status shows them"));
    }
    let others: Vec<&Value> = members.iter().filter(|member| !is_old(member)).collect();
    let name = |member: &Value| member["member"].as_str().unwrap_or("?").to_string();
    if let Some(learner) = others.iter().find(|member| member["votes"] != true) {
        let at = |value: &Value| value.as_u64().unwrap_or(0);
        let lacks = at(&view["last_position"]).saturating_sub(at(&learner["durable_position"]));
        return Successor::Wait(format!("{} catches up, and lacks {lacks} entries", name(learner)));
    }
    if others.len().is_multiple_of(2) {
        return Successor::Wait(
            "start the new coordinator: with an empty --data-dir, the fleet's key, and --join".into(),
        );
    }
    let is_heard = |member: &&Value| {
        let leads = member["member"] == view["leader"];
        leads || member["silent_ms"].as_u64().is_some_and(|ms| ms < HEARD_MS_MAX)
    };
    match others.iter().find(|member| !is_heard(member)) {
        Some(silent) => Successor::Wait(format!("{} is not heard", name(silent))),
        None => Successor::Ready(name(others.last().expect("an odd number"))),
    }
}

/// The view of the one that leads. It is waited for, as long as an election may take.
async fn leader_view(client: &mut Client) -> Result<Value, Failure> {
    let until = Instant::now() + FIND_LEADER;
    loop {
        match views(client).await {
            Ok(views) => {
                if let Some(view) = views.into_iter().find(|view| view["role"] == "leader") {
                    return Ok(view);
                }
                if Instant::now() > until {
                    return Err(not_done(
                        "nobody leads. Look at status: a majority of those with a vote must run",
                    ));
                }
            }
            Err(failure) if Instant::now() > until => return Err(failure),
            Err(_) => {}
        }
        sleep(LOOK_EVERY).await;
    }
}

/// The views of all that answer: at least one. The client learns where the others are.
async fn views(client: &mut Client) -> Result<Vec<Value>, Failure> {
    let mut found = Vec::new();
    let mut last = None;
    let mut number = 0;
    while let Some(address) = client.addresses().get(number).cloned() {
        number += 1;
        match client.call(&address, Method::GET, QUORUM, None).await {
            Ok(view) => {
                for member in view["members"].as_array().into_iter().flatten() {
                    client.learn(member["http"].as_str().unwrap_or(""));
                }
                found.push(view);
            }
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if found.is_empty() => Err(of_call(error)),
        _ => Ok(found),
    }
}

fn of_call(error: CallError) -> Failure {
    match error {
        CallError::Away { .. } => not_done(&format!("{error}. Is it --coordinators, and does it run?")),
        CallError::Refused { .. } => not_done(&error.to_string()),
    }
}

fn not_done(message: &str) -> Failure {
    Failure {
        code: FailureCode::NotDone,
        message: message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(members: &[(&str, bool, Option<u64>)]) -> Value {
        let members: Vec<Value> = members
            .iter()
            .map(|(name, votes, silent_ms)| {
                json!({"member": name, "votes": votes, "silent_ms": silent_ms, "durable_position": 4})
            })
            .collect();
        json!({"leader": "a", "last_position": 10, "members": members})
    }

    #[test]
    fn the_old_one_goes_when_a_new_one_has_its_vote_and_is_heard() {
        let (a, b, old) = (
            ("a", true, None),
            ("b", true, Some(10)),
            ("old", true, Some(90_000)),
        );
        let wait = |view: Value| match successor(&view, "old") {
            Successor::Wait(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(wait(view(&[a, b, old])).contains("start the new coordinator"));
        assert!(wait(view(&[a, b, old, ("new", false, Some(10))])).contains("lacks 6 entries"));
        assert!(wait(view(&[a, b, old, ("new", true, Some(5_000))])).contains("new is not heard"));
        let ready = view(&[a, b, old, ("new", true, Some(10))]);
        assert_eq!(successor(&ready, "old"), Successor::Ready("new".into()));
        assert!(matches!(successor(&ready, "other"), Successor::Never(_)));
        // A fleet of one is moved to another machine.
        let moved = view(&[("a", true, None), ("new", true, Some(10))]);
        assert_eq!(successor(&moved, "a"), Successor::Ready("new".into()));
    }
}
