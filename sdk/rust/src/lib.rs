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
//! not), [`AppendError::Unknown`] (it may have happened). The client retries, follows redirects and reconnects by
//! itself; each append is ordered at most once (`sdk/contract/wire.md`, "Appending exactly once").
//!
//! Pure cores: [`writer`] (a session), [`reads`], `route`, `liveness`. The shell has a task for each group, which looks
//! for its head (`link`), and a task for each connection (`connection`), which many groups may share ([`Connections`]).
//! [`feed`] and `inbox` pass appends to these tasks.

mod client;
mod clock;
pub mod codes;
mod connection;
mod entries;
mod errors;
pub mod feed;
mod handle;
mod handles;
mod inbox;
mod keys;
pub mod limits;
mod link;
mod link_state;
mod liveness;
mod options;
mod places;
mod pool;
mod port;
mod reading;
pub mod reads;
mod results;
mod route;
mod stream;
mod tail;
mod trust;
mod waker;
pub mod writer;

pub use client::Client;
pub use clock::now_us;
pub use entries::{Entry, entries_from};
pub use errors::{AppendError, ConnectError, ConnectFailed, Failure, HandleError, ReadError, info};
pub use handle::{Endpoint, Handle, HandleLimits, HandleSla, HandleTls};
pub use handles::HandleSource;
pub use keys::{KEY_HASH, partition_of};
pub use options::{AppendOptions, Connections, Options};
pub use quorate_wire::client::Attached;
pub use results::{Appended, Page, Status};
pub use tail::Tail;
pub use waker::Wake;
