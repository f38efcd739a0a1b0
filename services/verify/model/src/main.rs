//! `quorate-model`: explores worlds of the model in full, and prints the number of their states.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use quorate_model::bounds::{Bounds, Bug, Durability};
use quorate_model::explore::{Exploration, explore, unreached_by_all};
use quorate_model::worlds::{self, faults, world};

/// Explores worlds of the model of one group in full (docs/internals/model.md). The exit code is 1 if a property fails, if
/// a state that must be reached is reached in no world, or if the time did not suffice.
#[derive(Parser)]
struct Options {
    /// The worlds to explore.
    #[arg(value_enum, default_value_t = Set::Quick)]
    set: Set,
    /// Only worlds whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Break a rule; the steps to the first violation are printed.
    #[arg(long, value_enum)]
    bug: Option<Bug>,
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Longest time for one world, in seconds.
    #[arg(long, default_value_t = 1200)]
    seconds_max: u64,
    /// One line of JSON for each world, and nothing else.
    #[arg(long)]
    json: bool,
    /// With `one`: durability, servers, degree, sessions, epochs, crashes, breaks, wrong suspicions.
    #[arg(long, value_delimiter = ',')]
    bounds: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Set {
    /// The worlds of every test run, in seconds.
    Quick,
    /// Minutes.
    Large,
    /// Hours, perhaps.
    Longer,
    /// The world that `--bounds` describes.
    One,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let worlds = match options.set {
        Set::Quick => worlds::quick(),
        Set::Large => worlds::large(),
        Set::Longer => worlds::longer(),
        Set::One => match described(&options.bounds) {
            Some(bounds) => vec![bounds],
            None => {
                eprintln!("--bounds takes eight values, such as persistent,3,2,1,3,1,0,1");
                return ExitCode::from(2);
            }
        },
    };
    let mut outcomes = Vec::new();
    for mut bounds in worlds {
        if !bounds.name.contains(&options.only) {
            continue;
        }
        bounds.bug = options.bug;
        if !options.json {
            println!("{bounds}");
        }
        let outcome = explore(bounds, options.threads, Duration::from_secs(options.seconds_max));
        match options.json {
            true => println!("{}", json(&outcome)),
            false => print(&outcome),
        }
        outcomes.push(outcome);
    }
    let unreached = unreached_by_all(&outcomes);
    if !options.json {
        let states: usize = outcomes.iter().map(|outcome| outcome.states).sum();
        println!("{states} states in all");
        for property in &unreached {
            println!("reached in none of them: {property}");
        }
    }
    let is_whole =
        matches!(options.set, Set::One | Set::Longer) || !options.only.is_empty() || unreached.is_empty();
    let is_clean = is_whole && outcomes.iter().all(|outcome| outcome.is_exhaustive);
    ExitCode::from(u8::from(!is_clean))
}

fn described(fields: &[String]) -> Option<Bounds> {
    let [durability, numbers @ ..] = fields else {
        return None;
    };
    let durability = match durability.as_str() {
        "persistent" => Durability::Persistent,
        "in-memory" => Durability::InMemory,
        _ => return None,
    };
    let numbers: Vec<u8> = numbers.iter().filter_map(|n| n.parse().ok()).collect();
    let [servers, degree, sessions, epochs, crashes, breaks, wrong] = numbers[..] else {
        return None;
    };
    let (servers, appends) = ((servers, usize::from(degree)), (sessions, epochs));
    Some(world(
        "one",
        durability,
        servers,
        appends,
        faults(crashes, breaks, wrong),
    ))
}

fn print(outcome: &Exploration) {
    println!(
        "  {} states, {} transitions, depth {}, {:.1} s{}",
        outcome.states,
        outcome.transitions,
        outcome.depth,
        outcome.took.as_secs_f64(),
        if outcome.is_exhaustive {
            ""
        } else {
            ", not exhaustive"
        },
    );
    for violation in &outcome.violations {
        println!("  VIOLATED: {}", violation.property);
        for step in &violation.steps {
            println!("    {step}");
        }
    }
    for property in &outcome.reached {
        println!("  reached: {property}");
    }
}

fn json(outcome: &Exploration) -> serde_json::Value {
    let violated: Vec<_> = outcome.violations.iter().map(|v| v.property).collect();
    serde_json::json!({
        "world": outcome.name,
        "states": outcome.states,
        "transitions": outcome.transitions,
        "depth": outcome.depth,
        "seconds": (outcome.took.as_secs_f64() * 10.0).round() / 10.0,
        "exhaustive": outcome.is_exhaustive,
        "violated": violated,
        "reached": outcome.reached,
    })
}
