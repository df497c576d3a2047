//! A host: the real program, serving.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use ureq::Agent;

use crate::answer::Answer;
use crate::components;
use crate::patience::{Lines, PATIENCE};
use crate::program::{ended, weir};
use crate::store::Store;

/// A running host. Dropped, it is killed: a test that wants it to end well calls [`stop`](Self::stop).
pub(crate) struct Host {
    child: Child,
    pub(crate) url: String,
    log: Arc<Mutex<String>>,
    agent: Agent,
}

impl Host {
    /// Starts a host on a store, which it sets up.
    pub(crate) fn start(store: &Store) -> Self {
        Self::start_with(store, &[])
    }

    pub(crate) fn start_with(store: &Store, arguments: &[&str]) -> Self {
        let (url, schema) = (&*store.url, &*store.schema);
        let mut serve = weir(&["serve", "--migrate"]);
        serve.args(["--database-url", url, "--schema", schema]).args(arguments);
        // Few connections, because many hosts share a server; a deadline that only a loop meets on a busy machine.
        serve.env("WEIR_CONNECTIONS", "8").env("WEIR_GUEST_MILLISECONDS", "20000");
        serve.env("WEIR_LISTEN", "127.0.0.1:0");
        Self::spawn(&mut serve)
    }

    /// Runs a command that serves, and waits until it does.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        collect(child.stderr.take().unwrap(), log.clone());
        let stdout = child.stdout.take().unwrap();
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        let mut host = Self { child, url: String::new(), log, agent: config.build().new_agent() };
        let line = Lines::of(stdout).next().unwrap_or_else(|| {
            let _ = host.child.wait();
            panic!("the host does not serve")
        });
        host.url = line.strip_prefix("listening on ").unwrap().to_owned();
        host
    }

    /// Makes handlers active.
    pub(crate) fn with(self, components: &[Vec<u8>]) -> Self {
        for component in components {
            self.deploy(component).ok();
        }
        self
    }

    pub(crate) fn deploy(&self, component: &[u8]) -> Answer {
        Answer::of(self.agent.post(self.at("/v1/handlers")).send(component).unwrap())
    }

    pub(crate) fn send(&self, command: &str, data: &Value) -> Answer {
        self.try_send(command, data).unwrap()
    }

    /// An error, if the host is gone.
    pub(crate) fn try_send(&self, command: &str, data: &Value) -> Result<Answer, ureq::Error> {
        self.post(&format!("/v1/commands/{command}"), &[], data.to_string().as_bytes())
    }

    pub(crate) fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request = self.agent.post(self.at(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send(body).map(Answer::of)
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> Answer {
        Answer::of(self.agent.put(self.at(path)).send(body).unwrap())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        Answer::of(self.agent.get(self.at(path)).call().unwrap())
    }

    /// The events that a query names, up to the end of the log.
    pub(crate) fn events(&self, query: &str) -> Vec<Value> {
        let answer = self.get(&format!("/v1/events?{query}"));
        assert_eq!((answer.status, &*answer.content_type), (200, "application/x-ndjson"), "{answer:?}");
        answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The first so many events that a query names, as soon as they are in the log.
    pub(crate) fn first_events(&self, count: usize, query: &str) -> Vec<Value> {
        let events: Vec<Value> = self
            .follow(&format!("limit={count}&{query}"))
            .map(|line| serde_json::from_str(&line).unwrap())
            .collect();
        assert_eq!(events.len(), count);
        events
    }

    /// The lines of a stream that waits for more.
    pub(crate) fn follow(&self, query: &str) -> Lines {
        self.stream(&format!("follow=true&{query}"), &[])
    }

    pub(crate) fn stream(&self, query: &str, headers: &[(&str, &str)]) -> Lines {
        let mut request = self.agent.get(self.at(&format!("/v1/events?{query}")));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.config().timeout_global(None).build().call().unwrap();
        assert_eq!(response.status(), 200);
        Lines::of(response.into_body().into_reader())
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// What it has written to its standard error.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Tells it to stop, and returns at once.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits until it has ended of itself, and well.
    pub(crate) fn ended(mut self) {
        let status = ended(&mut self.child);
        assert!(status.success(), "{status}\n{}", self.log());
    }

    pub(crate) fn stop(self) {
        self.terminate();
        self.ended();
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the host at {} said:\n{}", self.url, self.log());
        }
    }
}

fn collect(mut source: impl Read + Send + 'static, into: Arc<Mutex<String>>) {
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = source.read(&mut piece) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    });
}

/// A host that several tests use at once, with both handlers. The last of them to end takes it down.
pub(crate) struct Shared {
    // Dropped in this order: the store last.
    host: Host,
    _store: Store,
}

impl std::ops::Deref for Shared {
    type Target = Host;

    fn deref(&self) -> &Host {
        &self.host
    }
}

pub(crate) fn shared() -> Arc<Shared> {
    static SHARED: OnceLock<Mutex<Weak<Shared>>> = OnceLock::new();
    let mut shared = SHARED.get_or_init(Mutex::default).lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let store = Store::new();
        let host = Host::start(&store).with(&[components::course_enrolment(), components::misbehaving()]);
        let new = Arc::new(Shared { host, _store: store });
        *shared = Arc::downgrade(&new);
        new
    })
}
