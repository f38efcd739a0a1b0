//! Keeps the place in the coordinator's log: in memory for the next registration, and on disk by a thread of its own. So
//! a slow disk holds up orders alone ([`crate::orders`]), and a newcomer's first registration.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use quorate_group::Mark;
use quorate_types::Place;
use quorate_types::control::ToServer;
use tokio::sync::oneshot;

use crate::place_file::PlaceFile;

/// Resolves when the place of an order is on stable storage, or refused by it.
pub type Written = oneshot::Receiver<()>;

pub struct PlaceKeeper {
    known: Option<Place>,
    /// On stable storage, refused by it, or on its way there with an order that waits for it.
    ordered: Option<Place>,
    /// Given to the thread, with an order or an answer.
    queued: Option<Place>,
    writes: mpsc::Sender<Write>,
    /// A place that came with a mere answer is being written; the next of these waits for it.
    is_writing: Arc<AtomicBool>,
    watch: PlaceWatch,
}

struct Write {
    place: Place,
    done: Option<oneshot::Sender<()>>,
}

/// The thread's writes, for the watch over hangs.
#[derive(Clone, Default)]
pub struct PlaceWatch {
    /// Odd while a write is under way.
    calls: Arc<AtomicU64>,
}

impl PlaceWatch {
    pub fn mark(&self) -> Mark {
        let calls = self.calls.load(Ordering::Relaxed);
        (calls % 2 == 1).then_some(calls)
    }

    fn during<T>(&self, write: impl FnOnce() -> T) -> T {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let done = write();
        self.calls.fetch_add(1, Ordering::Relaxed);
        done
    }
}

impl PlaceKeeper {
    /// The error is for the operator.
    pub fn start(data_dir: &Path) -> Result<Self, String> {
        let unusable = |error: io::Error| format!("cannot use {}: {error}", data_dir.join("place").display());
        let (mut file, known) = PlaceFile::open(data_dir).map_err(unusable)?;
        Self::writing(known, move |place| file.write(place)).map_err(unusable)
    }

    pub(crate) fn writing(
        known: Option<Place>,
        write: impl FnMut(Place) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (writes, inbox) = mpsc::channel();
        let is_writing = Arc::new(AtomicBool::new(false));
        let watch = PlaceWatch::default();
        let (writing, watched) = (is_writing.clone(), watch.clone());
        std::thread::Builder::new()
            .name("place".into())
            .spawn(move || write_all(write, &inbox, &writing, &watched))?;
        Ok(Self {
            known,
            ordered: known,
            queued: known,
            writes,
            is_writing,
            watch,
        })
    }

    pub fn known(&self) -> Option<Place> {
        self.known
    }

    pub fn watch(&self) -> PlaceWatch {
        self.watch.clone()
    }

    /// A message came with this place. An order may be obeyed when the place is written, and behind the orders before it.
    pub fn note(&mut self, place: Option<Place>, message: &ToServer) -> Option<Written> {
        let place = place?;
        self.known = Some(place);
        let waits = message.waits_for_place();
        let has = if waits { self.ordered } else { self.queued };
        if has == Some(place) {
            return None;
        }
        if waits {
            let (done, written) = oneshot::channel();
            (self.ordered, self.queued) = (Some(place), Some(place));
            let done = Some(done);
            return self.writes.send(Write { place, done }).is_ok().then_some(written);
        }
        if !self.is_writing.swap(true, Ordering::Relaxed) {
            self.queued = Some(place);
            let _stopped = self.writes.send(Write { place, done: None }).is_err();
        }
        None
    }
}

/// Until the server stops. A disk that cannot be written is no reason not to follow the coordinator: the process still
/// knows the place, and only a restart forgets it.
fn write_all(
    mut write: impl FnMut(Place) -> io::Result<()>,
    inbox: &mpsc::Receiver<Write>,
    is_writing: &AtomicBool,
    watch: &PlaceWatch,
) {
    while let Ok(first) = inbox.recv() {
        // One write does for all that came while the last one was under way.
        let waiting: Vec<Write> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let newest = waiting.last().expect("it has the first").place;
        if let Err(error) = watch.during(|| write(newest)) {
            tracing::error!(%error, "cannot write the place in the coordinator's log");
        }
        for one in waiting {
            match one.done {
                Some(done) => {
                    let _gone = done.send(()).is_err();
                }
                None => is_writing.store(false, Ordering::Relaxed),
            }
        }
    }
}
