//! `quorate-alloc`: placement and work conservation on an instance in JSON. A thin shell over the pure crates.
//!
//! Exit codes: 0 done, 2 the instance, the profile or an argument cannot be used (the field is named on stderr).

mod answer;
mod conserve;
mod instance;
mod place;
mod read;
mod time;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use quorate_placement::Profile;

use crate::instance::Instance;
use crate::place::How;
use crate::read::{Checked, Problem};

#[derive(Parser)]
#[command(
    name = "quorate-alloc",
    version,
    about = "Placement and work conservation on an instance in JSON"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Finds servers for failed replicas, then for applicants.
    Place {
        #[command(flatten)]
        input: Input,
        /// Applicants one at a time, in their order.
        #[arg(long, conflicts_with = "offline", required_unless_present = "offline")]
        online: bool,
        /// All applicants at once, the one with the highest dominant share first.
        #[arg(long)]
        offline: bool,
        #[arg(long, value_enum, default_value_t = Placing::Shape)]
        algorithm: Placing,
        /// Rounds in which a batch is improved after its first placement (off-line, not with `filo`).
        #[arg(long, default_value_t = quorate_placement::Search::default().rounds, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
        rounds: u32,
    },
    /// Shares out what is free to the tenants who want more.
    Conserve {
        #[command(flatten)]
        input: Input,
        #[arg(long, value_enum, default_value_t = Algorithm::Level)]
        algorithm: Algorithm,
        #[arg(long, value_enum, default_value_t = Policy::Unallocated)]
        policy: Policy,
        /// Rounds of Level-DRF between what is free and the promises.
        #[arg(long, default_value_t = quorate_controller::level::CROWD_ROUNDS, value_parser = clap::value_parser!(u32).range(..=1000))]
        crowd_rounds: u32,
        /// Times are medians of so many runs.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeat: u32,
    },
    /// Prints the JSON schema of instances and answers.
    Schema,
}

#[derive(Args)]
struct Input {
    /// The instance; `-` is standard input.
    instance: PathBuf,
    /// The cost profile that turns SLAs into demands; without one, the default profile, which is an estimate.
    #[arg(long)]
    profile: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// Filo's Algorithm 2, request by request.
    Cdrf,
    /// The same, event-driven.
    CdrfExact,
    Head,
    All,
    Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placing {
    /// Filo's Algorithm 1 as printed.
    Filo,
    /// The same with servers chosen by the shape of what they have free, as the coordinator does.
    Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    Unallocated,
    Idle,
}

fn main() -> ExitCode {
    match answer(Cli::parse().command) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("quorate-alloc: {problem}");
            ExitCode::from(2)
        }
    }
}

fn answer(command: Command) -> Result<String, Problem> {
    match command {
        Command::Place {
            input,
            online,
            algorithm,
            rounds,
            ..
        } => {
            let checked = checked(&input)?;
            let how = match (online, algorithm) {
                (true, _) => How::OnLine,
                (false, Placing::Filo) => How::Batch,
                (false, Placing::Shape) => How::Searching(rounds),
            };
            Ok(pretty(&place::place(&checked, algorithm, how)))
        }
        Command::Conserve {
            input,
            algorithm,
            policy,
            crowd_rounds,
            repeat,
        } => {
            let checked = checked(&input)?;
            let options = conserve::Options {
                algorithm,
                policy,
                crowd_rounds,
                repeat,
            };
            Ok(pretty(&conserve::conserve(&checked, &options)))
        }
        Command::Schema => Ok(pretty(&answer::schema())),
    }
}

fn checked(input: &Input) -> Result<Checked, Problem> {
    let profile = match &input.profile {
        None => Profile::default_profile(),
        Some(path) => {
            Profile::parse(&text(path)?).map_err(|e| Problem::new(e.field, e.problem).of("profile"))?
        }
    };
    let instance: Instance = read::parse(&text(&input.instance)?)?;
    read::check(instance, profile)
}

fn text(path: &Path) -> Result<String, Problem> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| Problem::new(path.display().to_string(), error.to_string()))
}

fn pretty(answer: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(answer).expect("an answer is plain data")
}
