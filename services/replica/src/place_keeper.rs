//! Keeps the place in the coordinator's log: in memory for the next registration, and on disk by a thread of its own, so
//! that a slow disk does not hold up heartbeats.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use quorate_types::Place;
use quorate_types::control::ToServer;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::place_file::PlaceFile;

/// Places that come with mere answers are written this seldom.
const LAZY_EVERY: Duration = Duration::from_secs(1);

pub struct PlaceKeeper {
    known: Option<Place>,
    /// On stable storage, or refused by it.
    written: Option<Place>,
    writes: mpsc::Sender<Write>,
    lazy_at: Option<Instant>,
}

struct Write {
    place: Place,
    done: Option<oneshot::Sender<()>>,
}

impl PlaceKeeper {
    pub fn start(data_dir: &Path) -> std::io::Result<Self> {
        let (file, known) = PlaceFile::open(data_dir)?;
        let (writes, inbox) = mpsc::channel();
        std::thread::Builder::new()
            .name("place".into())
            .spawn(move || write_all(file, &inbox))?;
        Ok(Self {
            known,
            written: known,
            writes,
            lazy_at: None,
        })
    }

    pub fn known(&self) -> Option<Place> {
        self.known
    }

    /// A message came with this place. Returns when it may be obeyed: for an order, when the place is on stable storage.
    pub async fn note(&mut self, place: Option<Place>, message: &ToServer) {
        let Some(place) = place else { return };
        self.known = Some(place);
        if self.written == Some(place) {
            return;
        }
        let is_order = matches!(
            message,
            ToServer::Configure { .. } | ToServer::Drop { .. } | ToServer::Lost { .. }
        );
        if is_order {
            let (done, written) = oneshot::channel();
            self.written = Some(place);
            let done = Some(done);
            if self.writes.send(Write { place, done }).is_ok() {
                let _stopped = written.await.is_err();
            }
        } else if self.lazy_at.is_none_or(|at| at.elapsed() >= LAZY_EVERY) {
            self.lazy_at = Some(Instant::now());
            self.written = Some(place);
            let _stopped = self.writes.send(Write { place, done: None }).is_err();
        }
    }
}

/// Until the server stops. A disk that cannot be written is no reason not to follow the coordinator: the process still
/// knows the place, and only a restart forgets it.
fn write_all(mut file: PlaceFile, inbox: &mpsc::Receiver<Write>) {
    while let Ok(write) = inbox.recv() {
        if let Err(error) = file.write(write.place) {
            tracing::error!(%error, "cannot write the place in the coordinator's log");
        }
        if let Some(done) = write.done {
            let _gone = done.send(()).is_err();
        }
    }
}
