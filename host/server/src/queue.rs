//! Which commands go together.
//!
//! While batches are on their way to the database, the next one gathers here. There is no timer: a command that comes when
//! nothing is under way goes at once, alone.
//!
//! ```text
//!   command ──enter──► waiting ──a batch may begin, and none with a boundary of its is under way──► batch ──► settled
//! ```
//!
//! Two batches of one host never hold the same boundary, so commands of one host do not conflict with each other: those
//! that overlap are in one batch, where each sees what the ones before it append, or one waits for the other. Other
//! hosts are kept apart by the store's check alone.

use std::collections::{HashMap, HashSet, VecDeque};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::batch::{self, Entry};
use crate::host::Host;

/// Commands of one batch.
const BATCH: usize = 64;
/// Keys by which the boundaries of one batch are locked. Its events add some.
const BATCH_KEYS: usize = 512;
/// Batches under way for one handler: one that is slow does not hold up the others.
const BATCHES: usize = 4;

/// Where commands wait for their batch. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Queue {
    sender: UnboundedSender<Message>,
}

enum Message {
    Entered(Box<Entry>),
    /// A batch has come to its end.
    Ended(Hold),
}

/// What a batch keeps others from while it is under way.
struct Hold {
    handler: String,
    keys: HashSet<i64>,
    /// It has a boundary without a key, and is the only one.
    everything: bool,
}

impl Queue {
    /// A queue, and what its task reads.
    pub(crate) fn new() -> (Self, Incoming) {
        let (sender, receiver) = unbounded_channel();
        (Self { sender: sender.clone() }, Incoming { sender, receiver })
    }

    /// Waits for its turn. How many may wait is bounded by the commands that a host takes on.
    pub(crate) fn enter(&self, entry: Entry) {
        // The task ends with the host's runtime; then nobody waits for the answer either.
        let _ = self.sender.send(Message::Entered(Box::new(entry)));
    }
}

/// The receiving end.
pub(crate) struct Incoming {
    sender: UnboundedSender<Message>,
    receiver: UnboundedReceiver<Message>,
}

/// Forms batches and sends them off, until the host rests.
pub(crate) async fn run(host: Host, mut incoming: Incoming) {
    let mut gathering = Gathering::default();
    while let Some(message) = incoming.receiver.recv().await {
        gathering.take(message);
        // Whatever else has come in the meantime goes with it.
        while let Ok(message) = incoming.receiver.try_recv() {
            gathering.take(message);
        }
        while let Some((batch, hold)) = gathering.next_batch() {
            let (host, ended) = (host.clone(), incoming.sender.clone());
            tokio::spawn(async move {
                // Also if it panics: its boundaries must not stay held.
                let ended = Ended { hold: Some(hold), sender: ended };
                batch::run(&host, batch).await;
                drop(ended);
            });
        }
    }
}

struct Ended {
    hold: Option<Hold>,
    sender: UnboundedSender<Message>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            let _ = self.sender.send(Message::Ended(hold));
        }
    }
}

#[derive(Default)]
struct Gathering {
    waiting: VecDeque<Entry>,
    /// Keys of the batches under way.
    held: HashSet<i64>,
    /// How many batches are under way, by handler. None is 0.
    under_way: HashMap<String, usize>,
    /// One of them holds everything.
    all_held: bool,
}

impl Gathering {
    fn take(&mut self, message: Message) {
        match message {
            Message::Entered(entry) => self.waiting.push_back(*entry),
            Message::Ended(Hold { handler, keys, everything }) => {
                self.held.retain(|key| !keys.contains(key));
                self.all_held &= !everything;
                if let Some(count) = self.under_way.get_mut(&handler) {
                    *count -= 1;
                    if *count == 0 {
                        self.under_way.remove(&handler);
                    }
                }
            }
        }
    }

    /// The next batch that may begin: commands of one handler, in the order in which they came, that no batch under way and
    /// no command before them stands in the way of.
    fn next_batch(&mut self) -> Option<(Vec<Entry>, Hold)> {
        let mut batch: Vec<Entry> = Vec::new();
        let mut hold = Hold { handler: String::new(), keys: HashSet::new(), everything: false };
        // Of those that are passed over: whoever comes after them and overlaps is passed over too.
        let mut passed_over = HashSet::new();
        let mut rest = VecDeque::with_capacity(self.waiting.len());
        let mut closed = self.all_held;
        while let Some(entry) = self.waiting.pop_front() {
            let handler = entry.handler.handler.name();
            let fits = !closed
                && (batch.is_empty() || hold.handler == handler)
                && self.under_way.get(handler).is_none_or(|count| *count < BATCHES)
                && !entry.keys.iter().any(|key| self.held.contains(key) || passed_over.contains(key))
                && (batch.is_empty() || hold.keys.len() + entry.keys.len() <= BATCH_KEYS)
                && (!entry.alone || batch.is_empty())
                && (!entry.unscoped || (batch.is_empty() && rest.is_empty() && self.under_way.is_empty()));
            if !fits {
                // What is locked by no key overlaps with everything.
                closed |= entry.unscoped;
                passed_over.extend(entry.keys.iter().copied());
                rest.push_back(entry);
                continue;
            }
            hold.handler = handler.to_owned();
            hold.keys.extend(entry.keys.iter().copied());
            hold.everything |= entry.unscoped;
            closed |= entry.unscoped || entry.alone || batch.len() + 1 == BATCH;
            batch.push(entry);
        }
        self.waiting = rest;
        if batch.is_empty() {
            return None;
        }
        self.held.extend(hold.keys.iter().copied());
        self.all_held |= hold.everything;
        *self.under_way.entry(hold.handler.clone()).or_default() += 1;
        Some((batch, hold))
    }
}
