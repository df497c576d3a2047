//! `weir dev`.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::answer::assert_says;
use crate::components::{course_enrolment, misbehaving, unique, version};
use crate::host::Host;
use crate::patience::eventually;
use crate::postgres::folder;
use crate::program::{Run, weir};
use crate::store::Store;

/// A project with a handler that was built.
struct Project {
    folder: TempDir,
    handler: PathBuf,
}

impl Project {
    fn new(component: &[u8]) -> Self {
        let folder = folder();
        let handler = folder.path().join("handler.wasm");
        fs::write(&handler, component).unwrap();
        Self { folder, handler }
    }

    fn dev(&self, arguments: &[&str]) -> Host {
        let mut dev = weir(&["dev", "--listen", "127.0.0.1:0"]);
        dev.args(arguments).arg("--project").arg(self.folder.path()).arg(&self.handler);
        Host::spawn(dev.env("WEIR_GUEST_MILLISECONDS", "20000"))
    }

    /// As a build does it: another file takes the place of the old one.
    fn build(&self, content: &[u8]) {
        let next = self.folder.path().join("handler.wasm.next");
        fs::write(&next, content).unwrap();
        fs::rename(&next, &self.handler).unwrap();
    }
}

fn accepted_by(host: &Host) -> Value {
    host.send("accept", &json!({ "note": unique("n") })).accepted()["version"].clone()
}

#[test]
fn a_file_that_is_built_again_is_deployed_again_and_junk_leaves_the_old_version_in_force() {
    let store = Store::new();
    let project = Project::new(&misbehaving());
    let host = project.dev(&["--database-url", &store.url, "--schema", &store.schema]);
    let first = accepted_by(&host);

    project.build(&version(&misbehaving(), "two"));
    let second = eventually("the new version is in force", || {
        Some(accepted_by(&host)).filter(|version| *version != first)
    });

    project.build(b"error: could not compile `handler`");
    let complaint = eventually("the junk is complained of", || {
        host.log().lines().find(|line| line.contains("was not deployed")).map(str::to_owned)
    });
    assert_says(&complaint, &["handler.wasm was not deployed", "this is a text file", "could not compile"]);
    assert_eq!(accepted_by(&host), second);

    project.build(&misbehaving());
    eventually("it goes on after junk", || Some(accepted_by(&host)).filter(|version| *version == first));
    host.stop();
}

#[test]
fn it_brings_its_own_postgres_and_keeps_its_data_there() {
    let project = Project::new(&course_enrolment());
    let host = project.dev(&[]);
    let define = json!({ "courseId": "c1", "capacity": 3 });
    host.send("defineCourse", &define).accepted();
    let port = port_of_postgres(&host.log());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    host.stop();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "its Postgres runs on");

    let host = project.dev(&[]);
    host.send("defineCourse", &define).rejected("course-exists");
    assert_eq!(host.events("").len(), 1);
    host.stop();
}

fn port_of_postgres(log: &str) -> u16 {
    let (_, rest) = log.split_once("port=").unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_handler_that_is_not_there_is_complained_of() {
    let run = Run::of(&["dev", "--listen", "127.0.0.1:0", "no/such/handler.wasm"]);
    assert_says(&run.complained(), &["there is no handler at no/such/handler.wasm", "build it first"]);
}

#[test]
fn a_missing_postgres_is_complained_of_with_the_place_that_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = weir(&["dev", "--listen", "127.0.0.1:0", "--project"]);
    dev.arg(folder.path()).env("WEIR_POSTGRES_BIN", folder.path());
    let line = Run::of_command(&mut dev, "").complained();
    let named = format!("WEIR_POSTGRES_BIN={}", Path::new(folder.path()).display());
    assert_says(&line, &[&named, "it has no initdb, pg_ctl, postgres"]);
}
