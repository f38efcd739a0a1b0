//! `quorate-sim`: runs seeds, or one of them again.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};
use quorate_figures::Figures;
use quorate_sim::plan::Profile;
use quorate_sim::runner::{self, Failure, Report, Seeds};

#[derive(Parser)]
#[command(
    version,
    about = "Simulates whole fleets, each from one seed, and checks what must hold"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run many seeds on all cores
    Run {
        #[arg(long, default_value_t = 1_000)]
        seeds: u64,
        #[arg(long, default_value_t = 1)]
        first: u64,
        /// The name of a profile of `docs/internals/simulator.md`
        #[arg(long, default_value = "any", value_parser = profile)]
        profile: Profile,
        /// Stop after so many failures
        #[arg(long, default_value_t = 10)]
        failures: usize,
        /// Folder to which the figure `sim_seeds_clean`, or that of the profile `quorum`, is appended
        #[arg(long)]
        figures: Option<PathBuf>,
        /// The command that was run, for the figure
        #[arg(long, default_value = "quorate-sim run")]
        command: String,
    },
    /// Show that each planted bug is caught
    #[cfg(debug_assertions)]
    Planted {
        /// Only the bug of this name
        #[arg(long)]
        only: Option<String>,
        /// Look for it in this profile
        #[arg(long, requires = "only", value_parser = profile)]
        profile: Option<Profile>,
        /// Folder to which the figure `planted_bugs_caught` is appended
        #[arg(long)]
        figures: Option<PathBuf>,
    },
    /// Run one seed, and say what happened in it
    Replay {
        seed: u64,
        #[arg(long, default_value = "any", value_parser = profile)]
        profile: Profile,
        /// How many of the last events to print
        #[arg(long, default_value_t = 200)]
        events: usize,
    },
}

fn profile(name: &str) -> Result<Profile, String> {
    let names: Vec<&str> = Profile::ALL.iter().map(|(name, _)| *name).collect();
    Profile::named(name).ok_or_else(|| format!("there are {}", names.join(", ")))
}

fn main() -> ExitCode {
    runner::quiet_panics();
    match Arguments::parse().command {
        Command::Run {
            seeds,
            first,
            profile,
            failures,
            figures,
            command,
        } => {
            let seeds = Seeds {
                first,
                count: seeds,
                profile,
                failures_max: failures,
            };
            run(seeds, figures.as_deref(), &command)
        }
        #[cfg(debug_assertions)]
        Command::Planted {
            only,
            profile,
            figures,
        } => planted(only.as_deref(), profile, figures.as_deref()),
        Command::Replay {
            seed,
            profile,
            events,
        } => replay(seed, profile, events),
    }
}

/// The figure of a profile, and the number of seeds on which a claim about the protocol rests.
fn figure_of(profile: Profile) -> Option<(&'static str, u64)> {
    match profile {
        Profile::Any => Some(("sim_seeds_clean", 300_000)),
        // Each of its fleets has three or five coordinators.
        Profile::Quorum => Some(("sim_seeds_clean_replicated", 100_000)),
        _ => None,
    }
}

/// Begins to keep figures, where a folder is given.
fn keeper(folder: Option<&Path>, command: &str) -> Option<Figures> {
    folder.map(|folder| Figures::new(folder, command.to_string()))
}

fn keep(figures: Option<Figures>, (name, unit): (&str, &str), value: u64, goal: u64) {
    if let Some(figures) = figures
        && let Err(trouble) = figures.write(name, value as f64, unit, Some(goal as f64))
    {
        eprintln!("{trouble}");
    }
}

fn run(seeds: Seeds, folder: Option<&Path>, command: &str) -> ExitCode {
    let figure = figure_of(seeds.profile);
    let figures = keeper(folder, command);
    let started = Instant::now();
    let shows = std::io::stderr().is_terminal();
    let report = runner::run(
        seeds,
        || {},
        |done, failed| {
            if shows && done.is_multiple_of(100) {
                let rate = done as f64 / started.elapsed().as_secs_f64();
                eprint!(
                    "\r  {done} of {} seeds, {failed} failed, {rate:.0}/s   ",
                    seeds.count
                );
                let _shown = std::io::stderr().flush().is_ok();
            }
        },
    );
    if shows {
        eprint!("\r\x1b[K");
    }
    print_report(&report, started.elapsed().as_secs_f64());
    for failure in &report.failures {
        println!(
            "seed {} failed: {}\n  {}",
            failure.seed,
            failure.reason,
            failure.command()
        );
    }
    if let Some(Failure { seed, profile, .. }) = report.failures.first() {
        let (_, lines) = runner::replay(*seed, *profile, 60);
        println!("the last events of seed {seed}:");
        runner::print_lines(&lines);
        return ExitCode::FAILURE;
    }
    if let Some((name, goal)) = figure {
        keep(figures, (name, "seeds"), report.counts.seeds, goal);
    }
    ExitCode::SUCCESS
}

fn print_report(report: &Report, wall_s: f64) {
    let counts = &report.counts;
    let hours = counts.simulated_us as f64 / 3.6e9;
    let seeds = counts.seeds;
    println!(
        "{seeds} seeds clean in {wall_s:.1} s: {hours:.1} simulated hours, {} events",
        counts.events
    );
    println!("{:>14}  in seeds", "count");
    for (name, count) in counts.numbers().into_iter().skip(3) {
        let share = 100.0 * counts.seeds_with(name) as f64 / seeds.max(1) as f64;
        println!("  {count:>12}  {share:>6.1} %  {name}");
    }
    println!("faults:");
    for (fault, count) in &counts.faults {
        println!("  {count:>12}  {}", fault.name());
    }
}

#[cfg(debug_assertions)]
fn planted(only: Option<&str>, profile: Option<Profile>, folder: Option<&Path>) -> ExitCode {
    use quorate_sim::planted::{RARE, Search, line, search, searches};
    // One bug of all says nothing about the others.
    let figures = keeper(folder.filter(|_| only.is_none()), "make sim PLANTED=1");
    println!("| bug | profile | caught by seed | what broke |\n| --- | --- | --- | --- |");
    use quorate_types::planted::Bug;
    let (mut missed, mut caught) = (0, 0);
    for one in searches() {
        if only.is_none_or(|name| name == format!("{:?}", one.bug)) {
            let profile = profile.unwrap_or(one.profile);
            let catch = search(Search { profile, ..one });
            missed += u64::from(catch.caught.is_none() && !RARE.contains(&catch.search.bug));
            caught += u64::from(catch.caught.is_some());
            println!("{}", line(&catch));
        }
    }
    let goal = (Bug::ALL.len() - RARE.len()) as u64;
    keep(figures, ("planted_bugs_caught", "bugs"), caught, goal);
    if missed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn replay(seed: u64, profile: Profile, events: usize) -> ExitCode {
    let (outcome, lines) = runner::replay(seed, profile, events);
    let skip = lines.len().saturating_sub(events);
    runner::print_lines(&lines[skip..]);
    match outcome {
        Ok(outcome) => {
            println!("seed {seed} is clean, trace {:016x}", outcome.trace_hash);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("seed {seed} failed: {}", failure.reason);
            ExitCode::FAILURE
        }
    }
}
