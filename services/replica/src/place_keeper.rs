//! Keeps the place in the coordinator's log: in memory for the next registration, and on disk by a thread of its own, so
//! that a slow disk holds up orders alone, and heartbeats behind them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use quorate_types::Place;
use quorate_types::control::ToServer;
use tokio::sync::oneshot;

use crate::place_file::PlaceFile;

pub struct PlaceKeeper {
    known: Option<Place>,
    /// On stable storage, or refused by it.
    written: Option<Place>,
    /// Given to the thread with an answer: it may not be written yet.
    queued: Option<Place>,
    writes: mpsc::Sender<Write>,
    /// A place that came with a mere answer is being written; the next of these waits for it.
    is_writing: Arc<AtomicBool>,
}

struct Write {
    place: Place,
    done: Option<oneshot::Sender<()>>,
}

impl PlaceKeeper {
    /// The error is for the operator.
    pub fn start(data_dir: &Path) -> Result<Self, String> {
        let unusable =
            |error: std::io::Error| format!("cannot use {}: {error}", data_dir.join("place").display());
        let (file, known) = PlaceFile::open(data_dir).map_err(unusable)?;
        let (writes, inbox) = mpsc::channel();
        let is_writing = Arc::new(AtomicBool::new(false));
        let writing = is_writing.clone();
        std::thread::Builder::new()
            .name("place".into())
            .spawn(move || write_all(file, &inbox, &writing))
            .map_err(unusable)?;
        Ok(Self {
            known,
            written: known,
            queued: known,
            writes,
            is_writing,
        })
    }

    pub fn known(&self) -> Option<Place> {
        self.known
    }

    /// A message came with this place. Returns when it may be obeyed: for an order, when the place is on stable storage.
    pub async fn note(&mut self, place: Option<Place>, message: &ToServer) {
        let Some(place) = place else { return };
        self.known = Some(place);
        let is_order = matches!(
            message,
            ToServer::Configure { .. } | ToServer::Drop { .. } | ToServer::Lost { .. }
        );
        let has = if is_order { self.written } else { self.queued };
        if has == Some(place) {
            return;
        }
        if is_order {
            let (done, written) = oneshot::channel();
            (self.written, self.queued) = (Some(place), Some(place));
            let done = Some(done);
            if self.writes.send(Write { place, done }).is_ok() {
                let _stopped = written.await.is_err();
            }
        } else if !self.is_writing.swap(true, Ordering::Relaxed) {
            self.queued = Some(place);
            let _stopped = self.writes.send(Write { place, done: None }).is_err();
        }
    }
}

/// Until the server stops. A disk that cannot be written is no reason not to follow the coordinator: the process still
/// knows the place, and only a restart forgets it.
fn write_all(mut file: PlaceFile, inbox: &mpsc::Receiver<Write>, is_writing: &AtomicBool) {
    while let Ok(write) = inbox.recv() {
        if let Err(error) = file.write(write.place) {
            tracing::error!(%error, "cannot write the place in the coordinator's log");
        }
        match write.done {
            Some(done) => {
                let _gone = done.send(()).is_err();
            }
            None => is_writing.store(false, Ordering::Relaxed),
        }
    }
}
