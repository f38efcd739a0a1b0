//! `quorate-planner`: placement and work conservation on an instance in JSON. A thin shell over the pure crates.
//!
//! Exit codes: 0 done, 2 the instance, the profile or an argument cannot be used (the field is named on stderr).

mod answer;
mod checked;
mod conserve;
mod demand;
mod flags;
mod instance;
mod limits;
mod place;
mod read;
mod share;
mod time;
mod units;
mod unusable;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use quorate_placement::Profile;

use crate::checked::Checked;
use crate::demand::DemandRequest;
use crate::flags::{Algorithm, Placing, Policy, SharePolicy};
use crate::instance::Instance;
use crate::place::How;
use crate::share::ShareRequest;
use crate::unusable::Unusable;

#[derive(Parser)]
#[command(
    name = "quorate-planner",
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
        /// Number of times that a batch is improved after its first placement (off-line, not with `filo`).
        #[arg(long, default_value_t = quorate_placement::Search::default().rounds, value_parser = clap::value_parser!(u32).range(..=10_000_000))]
        rounds: u32,
    },
    /// Shares out free amounts to the tenants that want more.
    Conserve {
        #[command(flatten)]
        input: Input,
        #[arg(long, value_enum, default_value_t = Algorithm::Level)]
        algorithm: Algorithm,
        #[arg(long, value_enum, default_value_t = Policy::Unallocated)]
        policy: Policy,
        /// Iterations of Level-DRF between the exchange of free amounts and the commitments.
        #[arg(long = "crowd-rounds", value_name = "ITERATIONS", default_value_t = quorate_burst::level::AGGREGATE_ITERATIONS, value_parser = clap::value_parser!(u32).range(..=1000))]
        aggregate_iterations: u32,
        /// Rounds of `all`, each over the amounts that the one before left.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
        rounds: u32,
        /// Number of runs; times are their medians.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeat: u32,
        /// Bound on the requests that `cdrf`, `head` and `all` grant one by one, at each server that computes.
        #[arg(long, default_value_t = 100_000_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
        requests_max: u64,
    },
    /// Prints what each replica of given SLAs is charged, in the whole numbers of admission.
    Demand {
        #[command(flatten)]
        input: Input,
    },
    /// Shares resources among flows that need several at once.
    Share {
        /// Demands, weights and capacities; `-` is standard input.
        request: PathBuf,
        #[arg(long, value_enum, default_value_t = SharePolicy::Drf)]
        policy: SharePolicy,
        /// Number of runs; the time is their median.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeat: u32,
    },
    /// Prints the JSON schema of instances and answers.
    Schema,
}

#[derive(Args)]
struct Input {
    /// The instance, or the request of `demand`; `-` is standard input.
    instance: PathBuf,
    /// The cost profile that turns SLAs into demands; by default the shipped one, which is an estimate.
    #[arg(long)]
    profile: Option<PathBuf>,
}

fn main() -> ExitCode {
    match answer(Cli::parse().command) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("quorate-planner: {problem}");
            ExitCode::from(2)
        }
    }
}

fn answer(command: Command) -> Result<String, Unusable> {
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
            aggregate_iterations,
            rounds,
            repeat,
            requests_max,
        } => {
            let checked = checked(&input)?;
            let options = conserve::Options {
                algorithm,
                policy,
                aggregate_iterations,
                rounds,
                repeat,
                requests_max,
            };
            Ok(pretty(&conserve::conserve(&checked, &options)?))
        }
        Command::Demand { input } => {
            let (request, profile) = DemandRequest::read(&text(&input.instance)?, given_profile(&input)?)?;
            Ok(pretty(&demand::demand(&request, &profile)?))
        }
        Command::Share {
            request,
            policy,
            repeat,
        } => {
            let problem = ShareRequest::read(&text(&request)?)?;
            Ok(pretty(&share::share(&problem, policy.into(), repeat)))
        }
        Command::Schema => Ok(pretty(&answer::schema())),
    }
}

fn checked(input: &Input) -> Result<Checked, Unusable> {
    let profile = given_profile(input)?.unwrap_or_else(Profile::default_profile);
    let instance: Instance = read::parse(&text(&input.instance)?)?;
    read::check(instance, profile)
}

fn given_profile(input: &Input) -> Result<Option<Profile>, Unusable> {
    let Some(path) = &input.profile else {
        return Ok(None);
    };
    let profile = Profile::parse(&text(path)?);
    profile
        .map(Some)
        .map_err(|e| Unusable::new(e.field, e.problem).of("profile"))
}

fn text(path: &Path) -> Result<String, Unusable> {
    let read = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|error| Unusable::new(path.display().to_string(), error.to_string()))
}

fn pretty(answer: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(answer).expect("an answer is plain data")
}
