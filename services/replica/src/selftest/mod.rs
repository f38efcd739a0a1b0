//! `quorate-replica selftest ofi`: whether one-sided writes work on this machine, before a server relies on them.
//!
//! Two processes write into one another's memory: round trips of 64 bytes, a stream both ways, and a writer that is shut out.

mod end;
mod measure;
mod outcome;
mod pair;
mod peer;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use quorate_fabric::{Library, Provider};

use crate::exit::Exit;

pub use measure::COMMAND;
pub use outcome::Outcome;

#[derive(Debug, Parser)]
#[command(name = "quorate-replica selftest", version)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One-sided writes by libfabric, between two processes of this machine
    Ofi {
        /// The provider; without it each that the machine has: efa, verbs, shm, tcp
        #[arg(long)]
        provider: Option<Provider>,
        /// The address of this machine by which others reach it
        #[arg(long, default_value = "127.0.0.1")]
        host: String,
        /// A file for the result, to be given to the server as --ofi-selftest
        #[arg(long, requires = "provider")]
        out: Option<PathBuf>,
    },
    /// The other process of the test
    #[command(hide = true)]
    OfiPeer {
        #[arg(long)]
        provider: Provider,
        #[arg(long)]
        host: String,
    },
}

/// Runs the test that the arguments name; they begin with `selftest`.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<(), Exit> {
    match Options::parse_from(arguments).what {
        What::OfiPeer { provider, host } => peer::run(provider, &host).map_err(Exit::DependencyMissing),
        What::Ofi {
            provider: Some(provider),
            host,
            out,
        } => of_one(provider, &host, out.as_deref()),
        What::Ofi { host, .. } => of_all(&host),
    }
}

fn of_one(provider: Provider, host: &str, out: Option<&Path>) -> Result<(), Exit> {
    let tested = pair::test(provider, host);
    let (is_ok, words) = match tested {
        Ok(report) => (true, report.to_string()),
        Err(failure) => (false, format!("FAILED: {failure}")),
    };
    println!("{provider:<6} {words}");
    let outcome = Outcome {
        provider: provider.name().into(),
        is_ok,
        words,
    };
    if let Some(out) = out {
        outcome.write(out).map_err(Exit::DependencyMissing)?;
    }
    if is_ok {
        Ok(())
    } else {
        Err(works_not(provider.name()))
    }
}

fn of_all(host: &str) -> Result<(), Exit> {
    let library = Library::get().map_err(|error| Exit::DependencyMissing(error.to_string()))?;
    let [major, minor] = library.version();
    println!("libfabric {major}.{minor}");
    let (mut passed, mut failed) = (0, String::new());
    for tried in Provider::ALL {
        match pair::test(tried, host) {
            Ok(report) => {
                passed += 1;
                println!("{tried:<6} {report}");
            }
            Err(pair::Failure::Missing(reason)) => {
                println!("{tried:<6} not here: {reason}")
            }
            Err(failure) => {
                println!("{tried:<6} FAILED: {failure}");
                let _always = write!(failed, "{tried} ");
            }
        }
    }
    if failed.is_empty() && passed > 0 {
        return Ok(());
    }
    Err(works_not(if failed.is_empty() {
        "no provider"
    } else {
        failed.trim_end()
    }))
}

fn works_not(what: &str) -> Exit {
    Exit::DependencyMissing(format!(
        "one-sided writes do not work here ({what}): run servers with --transport tcp"
    ))
}
