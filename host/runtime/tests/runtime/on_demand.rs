//! Where there is no address space for a pool.

use std::process::Command as Process;

use weir_runtime::{FailureKind, Runtime, RuntimeConfig};

use crate::guests::{accepted, component, decide, limits, runtime};

fn runtime_for(max_instances: u32) -> Runtime {
    Runtime::new(RuntimeConfig { cache_dir: None, limits: limits(), max_instances }).unwrap()
}

#[test]
fn there_is_a_pool_where_there_is_room() {
    assert!(runtime().pooled());
}

#[test]
fn a_pool_larger_than_the_address_space_is_done_without() {
    let runtime = runtime_for(10_000_000);
    assert!(!runtime.pooled());
    let handler = runtime.load(&component("misbehaving")).unwrap();
    accepted(decide(&handler, "accept", "{}").unwrap());
    assert!(decide(&handler, "panic", "{}").unwrap_err().to_string().contains("the decision is to panic"));
    let failure = decide(&handler, "allocate", "{}").unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Memory { .. }), "{failure}");
}

/// Run by the next test, in a process whose address space is limited.
#[test]
#[ignore = "it is for a process with little address space"]
fn in_little_address_space() {
    let runtime = runtime_for(16);
    assert!(!runtime.pooled());
    let handler = runtime.load(&component("misbehaving")).unwrap();
    accepted(decide(&handler, "accept", "{}").unwrap());
}

#[test]
fn a_process_with_little_address_space_still_runs_handlers() {
    let this = std::env::current_exe().unwrap();
    let output = Process::new("sh")
        .args([
            "-c",
            r#"ulimit -v 3000000 && exec "$0" --ignored --exact on_demand::in_little_address_space"#,
        ])
        .arg(this)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
