//! Three real coordinators: they take one another in, agree, and go on without any one of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_certificates::FleetKeys;
use quorate_types::control::ToServer;
use serde_json::{Value, json};

use crate::stage::{Coordinator, Server, arguments, command, eventually, run_to_end};

/// Coordinators of one fleet, each in a folder of its own. The key is the fleet's.
struct Fleet {
    folder: tempfile::TempDir,
    running: Vec<Option<Coordinator>>,
}

impl Fleet {
    /// All have votes.
    fn new(count: usize) -> Self {
        let mut fleet = Self {
            folder: tempfile::tempdir().unwrap(),
            running: Vec::new(),
        };
        for n in 0..count {
            let first = fleet.running.first().and_then(Option::as_ref);
            let join = first.map(|first| first.members.clone());
            fleet.running.push(None);
            fleet.start(n, join.as_deref());
        }
        eventually("all have votes", || {
            let members = fleet.view(0)["members"].as_array()?.clone();
            (members.len() == count && members.iter().all(|member| member["votes"] == true)).then_some(())
        });
        fleet
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("fleet.key")
    }

    fn folder_of(&self, n: usize) -> PathBuf {
        let folder = self.folder.path().join(format!("c{n}"));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn start(&mut self, n: usize, join: Option<&str>) {
        self.running[n] = Some(self.start_in(&self.folder_of(n), join));
    }

    fn start_in(&self, folder: &Path, join: Option<&str>) -> Coordinator {
        let options = self.options(join);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        Coordinator::start_with(folder, &options)
    }

    /// Options of a member, beside those of every coordinator.
    fn options(&self, join: Option<&str>) -> Vec<String> {
        let key = self.key_file().display().to_string();
        let mut options = vec!["--listen-members", "127.0.0.1:0", "--fleet-key-file", &key];
        options.extend(join.iter().flat_map(|join| ["--join", join]));
        options.into_iter().map(String::from).collect()
    }

    /// At another address, which it tells to one that runs.
    fn start_again(&mut self, n: usize) {
        let other = self.up().next().expect("one runs");
        let join = self.at(other).members.clone();
        self.start(n, Some(&join));
    }

    fn kill(&mut self, n: usize) {
        self.running[n].take().expect("it runs").kill();
    }

    fn at(&self, n: usize) -> &Coordinator {
        self.running[n].as_ref().expect("it runs")
    }

    fn view(&self, n: usize) -> Value {
        self.at(n).call("GET", "/v1/quorum", None).1
    }

    fn up(&self) -> impl Iterator<Item = usize> {
        (0..self.running.len()).filter(|n| self.running[*n].is_some())
    }

    /// The one that the others follow.
    fn leader(&self) -> usize {
        eventually("a leader", || {
            let views: Vec<(usize, Value)> = self.up().map(|n| (n, self.view(n))).collect();
            let leader = views.iter().find(|(_, view)| view["role"] == "leader")?;
            let all = views.iter().all(|(_, view)| view["leader"] == leader.1["member"]);
            all.then_some(leader.0)
        })
    }

    /// Has the leader issue a token. A leader that has just begun may still hear its servers.
    fn issue(&self, n: usize) {
        eventually("a token", || {
            let body = json!({"ttl_s": 60});
            (self.at(n).call("POST", "/v1/join-tokens", Some(body)).0 == 201).then_some(())
        });
    }

    fn tokens(&self, n: usize) -> usize {
        eventually("tokens", || {
            let (status, tokens) = self.at(n).call("GET", "/v1/join-tokens", None);
            (status == 200).then(|| tokens.as_array().unwrap().len())
        })
    }

    /// Waits until the same is agreed everywhere, also where each of them is. A leader that answers a read knows all that was
    /// agreed before; a new one may not yet.
    fn agree(&self) {
        eventually("the same log", || {
            let leader = self.leader();
            if self.at(leader).call("GET", "/v1/join-tokens", None).0 != 200 {
                return None;
            }
            let end = self.view(leader)["agreed_position"].clone();
            let same = |n: usize| {
                let view = self.view(n);
                let members = view["members"].as_array().unwrap();
                let knows = |address: &str| members.iter().any(|member| member["address"] == address);
                view["agreed_position"] == end && self.up().all(|other| knows(&self.at(other).members))
            };
            self.up().all(same).then_some(())
        });
    }
}

#[test]
fn servers_and_callers_are_told_who_leads_and_need_no_new_credential() {
    let mut fleet = Fleet::new(3);
    let server = Server::join(fleet.at(fleet.leader()), "s1");
    fleet.agree();
    // A machine that stands still for a moment has another one lead: the question is asked again.
    eventually("followers that name the leader", || {
        let leader = fleet.leader();
        let names_it = |follower: usize| {
            let mut told = Server::connect(fleet.at(follower), server.credentials());
            let control = Some(fleet.at(leader).control.clone());
            let is_told =
                told.receive(Duration::from_secs(5)) == Some(ToServer::NotLeader { leader: control });
            let (status, problem) = fleet.at(follower).call("GET", "/v1/servers", None);
            let refused = (status, &problem["code"]) == (503, &json!("not_leader"));
            is_told && refused && problem["leader"] == json!(fleet.at(leader).http)
        };
        let mut followers = fleet.up().filter(|n| *n != leader);
        followers.all(names_it).then_some(())
    });

    // Another one leads: with the same authority, the same keys, and the credentials that the first one gave.
    let keys = server.welcome.as_ref().unwrap().peer_keys.clone();
    fleet.kill(fleet.leader());
    let second = fleet.leader();
    let server = server.return_to(fleet.at(second), None, vec![]);
    assert_eq!(server.welcome.as_ref().unwrap().peer_keys, keys);
}

#[test]
fn an_operator_has_another_one_lead_and_removes_the_old_one() {
    let fleet = Fleet::new(3);
    let first = fleet.leader();
    let call = |n: usize, method: &str, path: &str, body| fleet.at(n).call(method, path, body);
    let other = fleet.up().find(|n| *n != first).unwrap();
    let (status, problem) = call(other, "POST", "/v1/quorum/step-down", Some(json!({})));
    assert_eq!((status, &problem["code"]), (503, &json!("not_leader")));
    let to = fleet.view(other)["member"].clone();
    let (status, problem) = call(first, "POST", "/v1/quorum/step-down", Some(json!({"to": to})));
    assert_eq!(status, 202, "{problem}");
    eventually("the other leads", || (fleet.leader() == other).then_some(()));

    let old = fleet.view(first)["member"].as_str().unwrap().to_string();
    let path = format!("/v1/quorum/members/{old}");
    eventually("its removal", || {
        let (status, problem) = call(other, "DELETE", &path, None);
        assert!([204, 404, 409].contains(&status), "{problem}");
        (status != 409).then_some(())
    });
    eventually("two members", || {
        (fleet.view(other)["members"].as_array().unwrap().len() == 2).then_some(())
    });
    for (path, expected) in [("/v1/quorum/members/nobody", 422), ("/v1/quorum/members/1", 404)] {
        assert_eq!(call(other, "DELETE", path, None).0, expected, "{path}");
    }
}

/// A command of an operator on the coordinators: exit code, standard output and standard error.
fn operate(fleet: &Fleet, words: &[&str]) -> (i32, String, String) {
    let one = fleet.at(fleet.up().next().unwrap());
    let token = fleet.folder_of(0).join("admin-token").display().to_string();
    let access = ["--coordinators", &one.http, "--admin-token-file", &token];
    let words: Vec<String> = [words, &access]
        .concat()
        .iter()
        .map(|word| (*word).to_string())
        .collect();
    let output = command(&words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn an_operator_replaces_a_coordinator_that_is_lost() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    let (code, shown, _) = operate(&fleet, &["status"]);
    assert_eq!(code, 0);
    let leads: Vec<&str> = shown.lines().filter(|line| line.contains("leads")).collect();
    assert!(shown.lines().count() == 5 && leads.len() == 1, "{shown}");
    assert!(leads[0].contains(&fleet.at(leader).http), "{shown}");

    // The leader is lost with its disk.
    let old = fleet.view(leader)["member"].as_str().unwrap().to_string();
    fleet.kill(leader);
    fleet.leader();
    let (code, _, said) = operate(&fleet, &["replace", &old, "--timeout-s", "1"]);
    assert!(code == 1 && said.contains("Nothing was removed"), "{code} {said}");
    std::fs::remove_dir_all(fleet.folder_of(leader).join("data")).unwrap();
    fleet.start_again(leader);
    let (code, shown, said) = operate(&fleet, &["replace", &old, "--timeout-s", "30"]);
    assert!(code == 0 && shown.contains("is removed"), "{code} {shown} {said}");
    let (_, view, _) = operate(&fleet, &["status", "--json"]);
    let view: Value = serde_json::from_str(&view).unwrap();
    let members = view["members"].as_array().unwrap();
    assert!(
        members.len() == 3 && members.iter().all(|member| member["votes"] == true),
        "{view}"
    );
    assert!(!members.iter().any(|member| member["member"] == *old), "{view}");

    let (code, shown, said) = operate(&fleet, &["step-down"]);
    assert!(code == 0 && shown.contains("leads now"), "{code} {shown} {said}");
    let (code, _, said) = operate(&fleet, &["remove", "77"]);
    assert!(code == 1 && said.contains("no such member"), "{code} {said}");
    let (code, _, said) = operate(&fleet, &["replace", "77"]);
    assert!(code == 2 && said.contains("status shows them"), "{code} {said}");
}

#[test]
fn the_last_of_three_goes_on_alone_when_an_operator_says_so() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    fleet.issue(leader);
    let server = Server::join(fleet.at(leader), "s1");
    fleet.agree();
    let last = fleet.up().find(|n| *n != leader).unwrap();
    for n in 0..3 {
        fleet.kill(n);
    }
    let data = fleet.folder_of(last).join("data").display().to_string();
    let lead_alone = |more: &[&str]| {
        let words = [&["lead-alone", "--data-dir", &data][..], more].concat();
        let words: Vec<String> = words.iter().map(|word| (*word).to_string()).collect();
        run_to_end(&words)
    };
    let log = std::fs::read(fleet.folder_of(last).join("data/coordinator.log")).unwrap();
    let (code, said) = lead_alone(&[]);
    assert!(
        code == 2 && said.contains("--the-others-are-lost"),
        "{code} {said}"
    );
    assert_eq!(
        std::fs::read(fleet.folder_of(last).join("data/coordinator.log")).unwrap(),
        log
    );
    assert_eq!(lead_alone(&["--the-others-are-lost"]).0, 0);
    fleet.start(last, None);
    eventually("it leads", || {
        (fleet.view(last)["role"] == "leader").then_some(())
    });
    assert_eq!(fleet.view(last)["members"].as_array().unwrap().len(), 1);
    let server = server.return_to(fleet.at(last), None, vec![]);
    assert_eq!(fleet.tokens(last), 2);
    assert!(server.welcome.unwrap().term.unwrap() > 1_000);
    // A former one that comes back after all is of another fleet.
    let join = fleet.at(last).members.clone();
    fleet.start(leader, Some(&join));
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(fleet.view(last)["members"].as_array().unwrap().len(), 1);
    assert_eq!(fleet.view(last)["role"], "leader");
    assert_eq!(lead_alone(&[]).0, 5, "it runs");
}

#[test]
fn the_fleets_key_is_replaced_while_it_runs() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    let server = Server::join(fleet.at(leader), "s1");
    let keys = server.welcome.as_ref().unwrap().peer_keys.clone();
    let old = key_of(fleet.folder.path());
    let other = fleet.folder.path().join("other.key");
    FleetKeys::create(&other).unwrap();
    let new = std::fs::read_to_string(&other).unwrap();
    // Known to all; in use; and the old one gone.
    for contents in [format!("{old}{new}"), format!("{new}{old}"), new] {
        std::fs::write(fleet.key_file(), contents).unwrap();
        for n in 0..3 {
            fleet.kill(n);
            fleet.leader();
            fleet.start_again(n);
            fleet.agree();
        }
    }
    let server = server.return_to(fleet.at(fleet.leader()), None, vec![]);
    assert_eq!(server.welcome.as_ref().unwrap().peer_keys, keys);
}

fn key_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("fleet.key")).unwrap()
}

#[test]
fn three_coordinators_go_on_without_any_one_of_them() {
    let mut fleet = Fleet::new(3);
    let first = fleet.leader();
    fleet.issue(first);
    fleet.agree();

    fleet.kill(first);
    let second = fleet.leader();
    assert_ne!(second, first);
    assert_eq!(fleet.tokens(second), 1, "what was answered stays");
    fleet.issue(second);

    // It comes back at another address, and gets what it missed.
    fleet.start_again(first);
    fleet.agree();
    fleet.kill(second);
    let third = fleet.leader();
    assert_eq!(fleet.tokens(third), 2);
    fleet.issue(third);

    // Without a majority nothing is answered.
    let last = fleet.up().find(|n| *n != third).unwrap();
    fleet.kill(last);
    let (status, problem) = fleet.at(third).call("GET", "/v1/join-tokens", None);
    assert_eq!(
        (status, &problem["code"]),
        (503, &json!("unavailable")),
        "{problem}"
    );
    fleet.start_again(last);
    fleet.start_again(second);
    fleet.agree();
    assert_eq!(fleet.tokens(fleet.leader()), 3);
}

#[test]
fn a_follower_answers_for_itself_alone_and_a_lost_disk_is_another_member() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    let follower = fleet.up().find(|n| *n != leader).unwrap();
    assert_eq!(fleet.at(follower).call("GET", "/v1/join-tokens", None).0, 503);
    let before = fleet.view(follower)["member"].clone();
    fleet.kill(follower);
    std::fs::remove_dir_all(fleet.folder_of(follower).join("data")).unwrap();
    let join = fleet.at(leader).members.clone();
    fleet.start(follower, Some(&join));
    eventually("a fourth member", || {
        let members = fleet.view(leader)["members"].as_array()?.clone();
        let own = fleet.view(follower)["member"].clone();
        let has = |member: &Value| {
            members
                .iter()
                .any(|each| each["member"] == *member && each["votes"] == true)
        };
        (own != before && members.len() == 4 && has(&own) && has(&before)).then_some(())
    });
}

#[test]
fn an_older_copy_of_a_disk_is_recognised() {
    let mut fleet = Fleet::new(3);
    let follower = fleet.up().find(|n| *n != fleet.leader()).unwrap();
    // With the mark beside the log, as a backup of the folder has it: alone, the log would be found too short at once.
    let data = fleet.folder_of(follower).join("data");
    let files = ["coordinator.log", "coordinator.mark"].map(|name| data.join(name));
    let read = || files.each_ref().map(|file| std::fs::read(file).unwrap());
    let write = |all: [Vec<u8>; 2]| {
        for (file, bytes) in files.iter().zip(all) {
            std::fs::write(file, bytes).unwrap();
        }
    };
    fleet.agree();
    fleet.kill(follower);
    let copy = read();
    fleet.start_again(follower);
    fleet.issue(fleet.leader());
    fleet.agree();
    fleet.kill(follower);
    let newest = read();
    write(copy);
    let join = fleet.at(fleet.leader()).members.clone();
    let options = [arguments(&fleet.folder_of(follower)), fleet.options(Some(&join))].concat();
    let (code, said) = run_to_end(&options);
    let is_said = said.contains("it is an older copy, or the disk has lost writes");
    assert!(code == 6 && is_said, "{code} {said}");
    // With the newest one it goes on.
    write(newest);
    fleet.start_again(follower);
    fleet.agree();
}

#[test]
fn two_with_the_same_number_do_not_both_go_on() {
    let mut fleet = Fleet::new(3);
    let leader = fleet.leader();
    let follower = fleet.up().find(|n| *n != leader).unwrap();
    fleet.agree();
    let (folder, other) = (fleet.folder_of(follower), tempfile::tempdir().unwrap());
    std::fs::create_dir(other.path().join("data")).unwrap();
    let (log, copied) = (
        folder.join("data/coordinator.log"),
        other.path().join("data/coordinator.log"),
    );
    std::fs::copy(log, copied).unwrap();
    let join = fleet.at(leader).members.clone();
    let twin = fleet.start_in(other.path(), Some(&join));
    // The one that came last is heard; the fleet has three members, and decides.
    eventually("the twin is heard", || {
        let members = fleet.view(leader)["members"].as_array()?.clone();
        let is_there = |member: &Value| member["address"] == json!(twin.members);
        (members.len() == 3 && members.iter().any(is_there)).then_some(())
    });
    fleet.kill(follower);
    fleet.issue(leader);
    let agreed = fleet.view(leader)["agreed_position"].as_u64().unwrap();
    eventually("the twin has the log", || {
        let position = twin.call("GET", "/v1/quorum", None).1["agreed_position"].as_u64();
        (position? >= agreed).then_some(())
    });
}

#[test]
fn coordinators_that_start_together_become_one_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("fleet.key");
    FleetKeys::create(&key).unwrap();
    let key = key.display().to_string();
    let ports: Vec<String> = (0..3).map(|_| free_address()).collect();
    let start = |n: usize| {
        let others: Vec<&str> = (0..3)
            .filter(|other| *other != n)
            .map(|other| &ports[other][..])
            .collect();
        let others = others.join(",");
        let mut more = vec![
            "--listen-members",
            &ports[n],
            "--fleet-key-file",
            &key,
            "--join",
            &others,
        ];
        more.extend((n == 0).then_some("--begin"));
        let own = folder.path().join(format!("c{n}"));
        std::fs::create_dir_all(&own).unwrap();
        Coordinator::launch_with(&own, &more)
    };
    let mut running: Vec<Coordinator> = (0..3).map(start).collect();
    running.iter_mut().for_each(Coordinator::wait_for_addresses);
    let all_vote = |one: &Coordinator, count: usize| {
        eventually("votes", || {
            let members = one.call("GET", "/v1/quorum", None).1["members"]
                .as_array()?
                .clone();
            let votes = members.iter().filter(|member| member["votes"] == true).count();
            (votes == count).then_some(())
        });
    };
    running.iter().for_each(|one| all_vote(one, 3));

    // Its disk is lost while the others are away: it waits for them, and joins.
    for one in running {
        one.kill();
    }
    std::fs::remove_dir_all(folder.path().join("c0/data")).unwrap();
    let mut first = start(0);
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!first.data_dir.join("coordinator.log").exists());
    let mut others: Vec<Coordinator> = (1..3).map(start).collect();
    others.iter_mut().for_each(Coordinator::wait_for_addresses);
    first.wait_for_addresses();
    all_vote(&first, 4);
}

fn free_address() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().to_string()
}

#[test]
fn strangers_and_wrong_options_are_refused_with_the_next_step() {
    let fleet = Fleet::new(1);
    let folder = tempfile::tempdir().unwrap();
    let (key, join) = (folder.path().join("fleet.key"), fleet.at(0).members.clone());
    let more = |more: &[&str]| {
        let mut all = arguments(folder.path());
        all.extend(more.iter().map(|argument| (*argument).to_string()));
        run_to_end(&all)
    };
    let key_file = key.display().to_string();
    let listen = ["--listen-members", "127.0.0.1:0"];
    for (arguments, expected) in [
        (vec!["--join", &join], "--join needs --listen-members"),
        (
            vec!["--listen-members", "0.0.0.0:0", "--fleet-key-file", &key_file],
            "name one with --advertise-members",
        ),
        (
            [&listen[..], &["--join", &join, "--fleet-key-file", &key_file]].concat(),
            "the file that its first one made: copy it",
        ),
    ] {
        let (code, said) = more(&arguments);
        assert!(code == 2 && said.contains(expected), "{code} {said}");
    }

    // Another key: it is never taken in.
    std::fs::create_dir(folder.path().join("other")).unwrap();
    let own = Coordinator::start_with(
        &folder.path().join("other"),
        &[&listen[..], &["--fleet-key-file", &key_file]].concat(),
    );
    assert_ne!(key_of(folder.path()), key_of(fleet.folder.path()));
    own.kill();
    let stranger = folder.path().join("stranger");
    std::fs::create_dir(&stranger).unwrap();
    let stranger = Coordinator::start_with(
        &stranger,
        &[&listen[..], &["--fleet-key-file", &key_file, "--join", &join]].concat(),
    );
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(fleet.view(0)["members"].as_array().unwrap().len(), 1);
    assert_eq!(stranger.call("GET", "/v1/quorum", None).1["leader"], Value::Null);
}
