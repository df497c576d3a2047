//! A host that is killed loses nothing that it has answered for.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::components::misbehaving;
use crate::host::Host;
use crate::patience::eventually;
use crate::store::Store;

const WRITERS: usize = 8;

#[test]
fn every_accepted_command_is_in_the_log_once_after_kill_9() {
    let store = Store::new();
    let host = Host::start(&store).with(&[misbehaving()]);
    let so_far = AtomicUsize::new(0);
    let accepted: Vec<String> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (so_far, agent, path) = (&so_far, host.agent().clone(), host.at("/v1/commands/accept"));
                scope.spawn(move || {
                    let mut accepted = Vec::new();
                    // Until the host is gone.
                    for n in 0.. {
                        let id = format!("{writer}-{n}");
                        let data = json!({ "note": format!("w{writer}"), "id": id }).to_string();
                        // Gone before the answer, or in the middle of it.
                        let Ok(mut response) = agent.post(&path).send(data) else { break };
                        let Ok(_) = response.body_mut().read_to_string() else { break };
                        assert_eq!(response.status(), 200);
                        accepted.push(id);
                        so_far.fetch_add(1, Ordering::Relaxed);
                    }
                    accepted
                })
            })
            .collect();
        eventually("the writers are at it", || (so_far.load(Ordering::Relaxed) >= 200).then_some(()));
        host.kill();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });

    let host = Host::start(&store);
    store.drained();
    let events = host.events("");
    let positions: Vec<u64> = events.iter().map(|event| event["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>());
    let mut times: HashMap<&str, u32> = HashMap::new();
    for event in &events {
        *times.entry(event["data"]["id"].as_str().unwrap()).or_default() += 1;
    }
    assert!(times.values().all(|times| *times == 1), "some event is there twice");
    assert!(accepted.iter().all(|id| times.contains_key(&**id)), "some accepted command has no event");
    // A command that was under way may have been accepted without anybody hearing of it.
    assert!(events.len() <= accepted.len() + WRITERS);
    host.send("accept", &json!({ "note": "w0" })).accepted();
}
