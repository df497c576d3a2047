//! The registry of handlers.

use futures_util::future::join;
use weir_store::{Deployed, HandlerVersion, Strategy};

use crate::fixture::Fixture;

fn version<'a>(handler: &'a str, component: &'a [u8], commands: &'a [String]) -> HandlerVersion<'a> {
    HandlerVersion { handler, component, commands, event_types: &[] }
}

#[tokio::test]
async fn the_same_bytes_twice_change_nothing_and_older_bytes_bring_the_older_version_back() {
    let f = Fixture::new(Strategy::Staging).await;
    let commands = ["do".to_owned()];
    let (one, two) = (version("h", b"one", &commands), version("h", b"two", &commands));
    let Deployed::Activated(first) = f.store.deploy(one).await.unwrap() else { panic!("it is new") };
    assert_eq!(f.store.deploy(one).await.unwrap(), Deployed::Unchanged(first));
    let Deployed::Activated(second) = f.store.deploy(two).await.unwrap() else { panic!("it is new") };
    assert_ne!(first, second);
    assert_eq!(f.store.deploy(one).await.unwrap(), Deployed::Activated(first));

    let active = f.store.active_versions().await.unwrap();
    assert_eq!(active.len(), 1);
    assert_eq!((active[0].id, active[0].handler.as_str()), (first, "h"));
    assert_eq!(f.store.component(first).await.unwrap(), b"one");
}

#[tokio::test]
async fn a_command_belongs_to_one_handler_even_if_two_ask_at_once() {
    let f = Fixture::new(Strategy::Staging).await;
    let commands = ["do".to_owned()];
    let (one, other) = join(
        f.store.deploy(version("one", b"1", &commands)),
        f.store.deploy(version("other", b"2", &commands)),
    )
    .await;
    let results = [one.unwrap(), other.unwrap()];
    let activated = results.iter().filter(|r| matches!(r, Deployed::Activated(_))).count();
    assert_eq!(activated, 1, "{results:?}");
    let refused =
        results.iter().any(|r| matches!(r, Deployed::CommandOwned { command, .. } if command == "do"));
    assert!(refused, "{results:?}");
}
