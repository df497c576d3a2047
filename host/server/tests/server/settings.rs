//! The settings of a store, over HTTP and from a shell.

use serde_json::json;

use crate::answer::assert_says;
use crate::host::Host;
use crate::program::Run;
use crate::store::Store;

const WEEK: u64 = 7 * 24 * 60 * 60;

#[test]
fn what_is_put_is_changed_and_the_rest_stays() {
    let store = Store::new();
    let host = Host::start(&store);
    let mut expected =
        json!({ "strategy": "staging", "unscoped_conditions": false, "outcomes_kept_seconds": WEEK });
    assert_eq!(host.get("/v1/settings").ok(), expected);
    for (name, value) in [
        ("outcomes_kept_seconds", json!(3600)),
        ("unscoped_conditions", json!(true)),
        ("strategy", json!("boundary")),
    ] {
        expected[name] = value.clone();
        assert_eq!(host.put("/v1/settings", &json!({ name: value }).to_string()).ok(), expected);
        assert_eq!(host.get("/v1/settings").ok(), expected);
    }
    assert_eq!(host.put("/v1/settings", "{}").ok(), expected);
    let all = json!({ "strategy": "hybrid", "unscoped_conditions": false, "outcomes_kept_seconds": 60 });
    assert_eq!(host.put("/v1/settings", &all.to_string()).ok(), all);
    // There are not two ways.
    host.get("/v1/strategy").problem(404, "no-such-route");
}

#[test]
fn a_setting_that_can_not_be_is_complained_of_and_nothing_is_changed() {
    let store = Store::new();
    let host = Host::start(&store);
    let before = host.get("/v1/settings").ok();
    for (body, parts) in [
        (r#"{"strategy":"optimistic"}"#, &["\"optimistic\"", "global, boundary, hybrid and staging"][..]),
        (
            r#"{"strategy":"hybrid","outcomes_kept_seconds":59}"#,
            &["59 seconds", "60 (a minute)", "315360000"],
        ),
        (r#"{"outcomes_kept_seconds":315360001}"#, &["315360001 seconds", "(ten years)"]),
        (r#"{"outcomes_kept_seconds":-1}"#, &["-1"]),
        (r#"{"outcomes_kept":"7d"}"#, &["outcomes_kept", "outcomes_kept_seconds"]),
        (r#"{"unscoped_conditions":"yes"}"#, &["expected a boolean"]),
        ("", &["EOF"]),
    ] {
        assert_says(&host.put("/v1/settings", body).problem(400, "malformed-settings"), parts);
    }
    assert_eq!(host.get("/v1/settings").ok(), before);
}

#[test]
fn settings_are_shown_and_set_from_a_shell() {
    let store = Store::new();
    let host = Host::start(&store);
    let run = |arguments: &[&str]| Run::of(&[&["settings", "--url", &host.url], arguments].concat());
    let shown = |kept| {
        format!("strategy             staging\nunscoped-conditions  false\noutcomes-kept        {kept}\n")
    };
    assert_eq!(run(&[]).succeeded(), shown("7d"));
    for (given, kept) in [("12h", "12h"), ("48h", "2d"), ("90m", "90m"), ("61s", "61s"), ("3650d", "3650d")] {
        assert_eq!(run(&["set", "outcomes-kept", given]).succeeded(), shown(kept));
    }
    for given in ["7", "d", "7w", "1.5h", "", "ä"] {
        assert_says(&run(&["set", "outcomes-kept", given]).complained(), &["7d, 12h, 90m or 3600s"]);
    }
    for given in ["59s", "0d", "3651d", "18446744073709551615d"] {
        assert_says(&run(&["set", "outcomes-kept", given]).complained(), &["can't be kept", "ten years"]);
    }
    assert_says(&run(&["set", "unscoped-conditions", "maybe"]).complained(), &["maybe", "true, false"]);
    assert_says(&run(&["set", "colour", "red"]).complained(), &["colour"]);
    assert_eq!(run(&[]).succeeded(), shown("3650d"));
}
