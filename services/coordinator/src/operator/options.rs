//! Flags of the commands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Names by which the process knows that it is to run a command, and not to be a coordinator.
pub const COMMANDS: [&str; 9] = [
    "status",
    "step-down",
    "replace",
    "remove",
    "lead-alone",
    "backup",
    "restore",
    "fleet-version",
    "help",
];

/// Looks after the coordinators of a fleet.
#[derive(Debug, Parser)]
#[command(name = "quorate-coordinator", version)]
pub struct Operator {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows the coordinators: who leads, who has a vote, who lags behind
    Status {
        #[command(flatten)]
        access: Access,
        /// JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Has another coordinator lead, for example before this one is restarted
    StepDown {
        #[command(flatten)]
        access: Access,
        /// The member that is to lead; without it the one that lacks least
        #[arg(long)]
        to: Option<String>,
    },
    /// Waits until a new coordinator has caught up and has a vote, and removes the old one. Start the new one first: with an
    /// empty --data-dir, the fleet's key, and --join
    Replace {
        #[command(flatten)]
        access: Access,
        /// The member to be replaced, as status shows it
        old: String,
        /// Seconds to wait for the new one
        #[arg(long, default_value_t = 600)]
        timeout_s: u64,
    },
    /// Lets the last coordinator decide without the others, whose disks are lost. Stop it first, and read
    /// docs/operating/coordinators.md
    LeadAlone {
        /// Its folder
        #[arg(long, env = "QUORATE_DATA_DIR")]
        data_dir: PathBuf,
        /// Their disks will not come back: without this it only says what would be lost
        #[arg(long)]
        the_others_are_lost: bool,
    },
    /// Keeps a copy of a running coordinator's log in another folder, on another disk: docs/operating/backups.md
    Backup {
        /// The coordinator's folder
        #[arg(long, env = "QUORATE_DATA_DIR")]
        data_dir: PathBuf,
        /// The copy's folder
        #[arg(long)]
        to: PathBuf,
        /// Copies once and ends, where otherwise it goes on until it is stopped
        #[arg(long)]
        once: bool,
    },
    /// Puts a copy in place as the log of a coordinator whose disk is lost, before its start
    Restore {
        /// The copy's folder
        #[arg(long)]
        from: PathBuf,
        /// The coordinator's folder, without a log
        #[arg(long, env = "QUORATE_DATA_DIR")]
        data_dir: PathBuf,
    },
    /// Shows the fleet's version, and what must be upgraded before it can be raised
    FleetVersion {
        #[command(flatten)]
        access: Access,
        /// Raises it to the newest that all read. Afterwards the release before cannot come back
        #[arg(long)]
        raise: bool,
    },
    /// Removes a coordinator for good, with nothing in its place
    Remove {
        #[command(flatten)]
        access: Access,
        /// The member, as status shows it
        member: String,
    },
}

/// The way to the coordinators.
#[derive(Debug, Args)]
pub struct Access {
    /// HTTP addresses of coordinators, with commas between; one is enough to find the others
    #[arg(
        long,
        env = "QUORATE_COORDINATORS",
        value_delimiter = ',',
        default_value = "127.0.0.1:7401"
    )]
    pub coordinators: Vec<String>,
    /// File with the token of their HTTP interface
    #[arg(long, env = "QUORATE_ADMIN_TOKEN_FILE")]
    pub admin_token_file: PathBuf,
    /// The fleet's authority, ca.pem of a coordinator's folder. Without it only coordinators on this machine are called
    #[arg(long, env = "QUORATE_CA_FILE")]
    pub ca: Option<PathBuf>,
}
