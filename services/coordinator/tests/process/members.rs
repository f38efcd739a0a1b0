//! Three real coordinators: they take one another in, agree, and go on without any one of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::stage::{Coordinator, arguments, eventually, run_to_end};

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
        let key = self.key_file().display().to_string();
        let mut more = vec!["--listen-members", "127.0.0.1:0", "--fleet-key-file", &key];
        more.extend(join.iter().flat_map(|join| ["--join", join]));
        self.running[n] = Some(Coordinator::start_with(&self.folder_of(n), &more));
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

    /// Waits until the same is agreed everywhere.
    fn agree(&self) {
        let leader = self.leader();
        eventually("the same log", || {
            let end = self.view(leader)["agreed_position"].clone();
            let same = |n: usize| self.view(n)["agreed_position"] == end;
            self.up().all(same).then_some(())
        });
    }
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
        (listen.to_vec(), "--listen-members needs --fleet-key-file"),
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
