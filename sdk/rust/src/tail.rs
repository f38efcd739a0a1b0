//! Following a log.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::entries::Entry;
use crate::errors::{ReadError, closed};
use crate::reading::{ReadCall, ReadInbox, TailPage};

/// The entries of a log from an offset on, as they are committed. It survives the loss of a replica without gap or
/// duplicate. It ends with an error when the log cannot be followed any more, for example because the offset was
/// trimmed.
pub struct Tail {
    pages: mpsc::UnboundedReceiver<TailPage>,
    inbox: Arc<ReadInbox>,
    request: Option<u32>,
    rest: std::vec::IntoIter<Entry>,
}

impl Tail {
    pub(crate) fn new(pages: mpsc::UnboundedReceiver<TailPage>, inbox: Arc<ReadInbox>) -> Self {
        Self {
            pages,
            inbox,
            request: None,
            rest: Vec::new().into_iter(),
        }
    }

    /// The next entry.
    pub async fn next(&mut self) -> Result<Entry, ReadError> {
        loop {
            if let Some(entry) = self.rest.next() {
                return Ok(entry);
            }
            self.rest = self.next_entries().await?.into_iter();
        }
    }

    /// The next entries, at least one: quicker than one by one.
    pub async fn next_entries(&mut self) -> Result<Vec<Entry>, ReadError> {
        let rest: Vec<Entry> = self.rest.by_ref().collect();
        if !rest.is_empty() {
            return Ok(rest);
        }
        loop {
            let page = self.pages.recv().await.unwrap_or_else(|| Err(closed()));
            let (request, entries, bytes) = page.map_err(ReadError)?;
            self.request = Some(request);
            self.inbox.push(ReadCall::Consumed { request, bytes });
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        // A tail without a page yet is cancelled when its first page finds no receiver.
        if let Some(request) = self.request {
            self.inbox.push(ReadCall::Cancel { request });
        }
    }
}
