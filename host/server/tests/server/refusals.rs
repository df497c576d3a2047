//! A program that can't start says why in one line, with what to do.

use std::net::TcpListener;

use crate::answer::assert_says;
use crate::program::{Run, weir};
use crate::store::Store;

fn serve(store: &Store, arguments: &[&str]) -> Run {
    let (url, schema) = (&*store.url, &*store.schema);
    let serve = ["serve", "--listen", "127.0.0.1:0", "--database-url", url, "--schema", schema];
    Run::of(&[&serve[..], arguments].concat())
}

#[test]
fn a_store_that_is_not_set_up_needs_weir_migrate() {
    let store = Store::new();
    assert_says(&serve(&store, &[]).complained(), &["the store is not set up", "run `weir migrate`"]);
}

#[test]
fn a_store_of_an_older_version_needs_weir_migrate() {
    let store = Store::new();
    Run::of(&["migrate", "--database-url", &store.url, "--schema", &store.schema]).succeeded();
    store
        .session()
        .run("DELETE FROM _sqlx_migrations WHERE version = (SELECT max(version) FROM _sqlx_migrations)");
    assert_says(&serve(&store, &[]).complained(), &["of an older version", "run `weir migrate`"]);
}

#[test]
fn a_store_of_a_newer_version_needs_a_newer_weir() {
    let store = Store::new();
    let migrate = || Run::of(&["migrate", "--database-url", &store.url, "--schema", &store.schema]);
    migrate().succeeded();
    store.session().run(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9000, 'from the future', true, '', 0)",
    );
    for run in [serve(&store, &[]), serve(&store, &["--migrate"]), migrate()] {
        let parts =
            [&*store.schema, "of a newer version", "migration 9000", "use a newer weir, or another database"];
        assert_says(&run.complained(), &parts);
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_a_way_out() {
    let store = Store::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "dev"] {
        let mut command = weir(&[command, "--database-url", &store.url, "--schema", &store.schema]);
        let line = Run::of_command(command.args(["--listen", &address]), "").complained();
        assert_says(&line, &["can't listen on ", &address, "--listen", "port 0 takes a free one"]);
    }
}

#[test]
fn a_database_that_is_not_there_is_complained_of() {
    let none = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut store = Store::new();
    let reachable = std::mem::replace(&mut store.url, format!("postgres://weir@{none}/weir"));
    assert_says(&serve(&store, &[]).complained(), &["the database is not available"]);
    store.url = reachable + "_no_such_database";
    assert_says(
        &serve(&store, &["--migrate"]).complained(),
        &["the database is not available", "_no_such_database"],
    );
    store.url = "mysql://localhost/weir".into();
    let parts =
        ["the database URL can't be understood", "it looks like postgres://user:password@host:5432/name"];
    assert_says(&serve(&store, &[]).complained(), &parts);
}

#[test]
fn a_wrong_flag_is_named_in_one_line_with_the_way_to_the_help() {
    let store = Store::new();
    assert_says(
        &serve(&store, &["--frobnicate"]).complained(),
        &["unexpected argument '--frobnicate'", "--help"],
    );
    assert_says(&serve(&store, &["--instances", "0"]).complained(), &["'0'", "--instances", "1..=10000"]);
    let parts = ["'Weir'", "--schema", "lower-case letters"];
    assert_says(
        &Run::of(&["migrate", "--database-url", &store.url, "--schema", "Weir"]).complained(),
        &parts,
    );
    assert_says(&Run::of(&["serve"]).complained(), &["--database-url", "not provided"]);
    assert_says(&Run::of(&["sned", "x"]).complained(), &["'sned'", "send"]);
    assert_says(&Run::of(&["serve", "--listen", "8417"]).complained(), &["'8417'", "--listen"]);
}
