//! The reference client of a Quorate group: append, read and tail.
//!
//! ```no_run
//! # async fn example(handle_json: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let client = quorate_client::Client::connect(handle_json).await?;
//! let offset = client.append("hello").await?;
//! let mut tail = client.tail(offset);
//! let entry = tail.next().await?;
//! assert_eq!(entry.data, "hello");
//! client.close().await;
//! # Ok(()) }
//! ```
//!
//! An append ends in one of three ways: acked with its offset, [`AppendError::Refused`] (it did not happen and will
//! not), [`AppendError::Unknown`] (it may have happened). Retries, redirects and reconnection are the client's
//! business; each append is ordered at most once (`sdk/contract/wire.md`, "Appending exactly once").
//!
//! Pure cores: [`writer`] (a session), [`reads`], `route`, `liveness`. Shell: `link`, one task for each group that
//! looks for its head; `carrier`, one for each connection, which many groups may share ([`Connections`]); [`feed`] and
//! `inbox`, by which appends reach them.

mod carrier;
mod carriers;
mod client;
mod clock;
pub mod codes;
mod entries;
mod errors;
pub mod feed;
mod handle;
mod handles;
mod inbox;
pub mod limits;
mod link;
mod liveness;
mod reading;
pub mod reads;
mod route;
mod trust;
mod wake;
pub mod writer;

pub use client::{AppendOptions, Appended, Client, ConnectFailed, Connections, Options, Page, Status, Tail};
pub use clock::now_us;
pub use entries::{Entry, entries_from};
pub use errors::{AppendError, ConnectError, Failure, HandleError, ReadError, info};
pub use handle::{Endpoint, Handle, HandleLimits, HandleSla, HandleTls};
pub use handles::HandleSource;
pub use quorate_wire::client::Attached;
pub use wake::Wake;
