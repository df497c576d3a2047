//! Scenarios of a handler that uses what the contract offers: a wider boundary, the clock, the principal.
//! Faults can be switched on in it, to see that the scenarios find them.

use std::cell::Cell;
use std::collections::BTreeMap;

use weir_guest::prelude::*;
use weir_guest::testing::{Given, Scenario};

commands! {
    enum Command {
        Spend { account: String, amount: u32 },
    }
}

events! {
    enum Event: EventType {
        GroupFormed { group: String, limit_per_day: u32 } tags [tag("group", group)],
        AccountOpened { account: String, group: String, owner: String } tags [tag("account", account)],
        MoneySpent { account: String, group: String, amount: u32 } tags
            [("account", account), ("group", group)].map(|(key, value)| tag(key, value)),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    ForgetsAType,
    CountsOtherGroups,
    HasNoTag,
    WidensForEver,
    WidensByNothing,
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
}

fn has(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}

/// An account may spend what its group has left for the day. Only its own events tell which group that is.
#[derive(Default)]
struct Spending {
    groups: BTreeMap<String, u32>,
    accounts: BTreeMap<String, (String, String)>,
    spent: Vec<(String, u32, u64)>,
}

export!(Spending);

const DAY: u64 = 24 * 60 * 60 * 1000;

impl Handler for Spending {
    const NAME: &'static str = "spending";
    type Command = Command;
    type Event = Event;

    fn boundary(Command::Spend { account, .. }: &Command, _: &Context) -> Result<Query, Rejection> {
        let tags = (!has(Fault::HasNoTag)).then(|| tag("account", account));
        Ok(Query::new().item([EventType::AccountOpened], tags))
    }

    fn apply(&mut self, event: Event, recorded: &Recorded) {
        match event {
            Event::GroupFormed { group, limit_per_day } => {
                self.groups.insert(group, limit_per_day);
            }
            Event::AccountOpened { account, group, owner } => {
                self.accounts.insert(account, (group, owner));
            }
            Event::MoneySpent { group, amount, .. } => self.spent.push((group, amount, recorded.at)),
        }
    }

    fn decide(&self, Command::Spend { account, amount }: Command, context: &Context) -> Decision<Event> {
        let Some((group, owner)) = self.accounts.get(&account) else {
            return reject("account-unknown", format!(r#"Account "{account}" does not exist"#));
        };
        if context.principal.as_ref() != Some(owner) {
            return reject("not-the-owner", format!(r#"Account "{account}" is not yours"#));
        }
        let spending = (!has(Fault::ForgetsAType)).then_some(EventType::MoneySpent);
        let types = [EventType::GroupFormed].into_iter().chain(spending);
        let of_group = Query::new().item(types, [tag("group", group)]);
        if has(Fault::WidensForEver) {
            let another = format!("{group}{}", context.widened.len());
            return widen(Query::new().item([EventType::GroupFormed], [tag("group", another)]));
        }
        if has(Fault::WidensByNothing) || !context.has_widened_by(&of_group) {
            return widen(of_group);
        }
        let Some(limit) = self.groups.get(group) else {
            return reject("group-unknown", format!(r#"Group "{group}" was never formed"#));
        };
        let today = context.received_at / DAY;
        let counts = |spender: &String, at: u64| {
            (spender == group || has(Fault::CountsOtherGroups)) && at / DAY == today
        };
        let spent = self.spent.iter().filter(|(group, _, at)| counts(group, *at));
        let left = limit - spent.map(|(_, amount, _)| amount).sum::<u32>();
        if amount > left {
            return reject("limit-exceeded", format!("{left} of {limit} are left for today"));
        }
        Ok(vec![Event::MoneySpent { account, group: group.clone(), amount }])
    }
}

fn spend(account: &str, amount: u32) -> Command {
    Command::Spend { account: account.into(), amount }
}

fn spent(account: &str, group: &str, amount: u32) -> Event {
    Event::MoneySpent { account: account.into(), group: group.into(), amount }
}

/// Groups `g` and `h`; accounts `g1` and `g2` of Ada in the one and `h1` of Bob in the other.
fn given() -> Given<Spending> {
    let group = |group: &str| Event::GroupFormed { group: group.into(), limit_per_day: 100 };
    let account = |account: &str, group: &str, owner: &str| Event::AccountOpened {
        account: account.into(),
        group: group.into(),
        owner: owner.into(),
    };
    Spending::given([group("g"), group("h")])
        .and([account("g1", "g", "ada"), account("g2", "g", "ada"), account("h1", "h", "bob")])
        .by("ada")
}

#[test]
fn a_wider_boundary_shows_more() {
    given().and([spent("g2", "g", 60)]).when(spend("g1", 40)).then([spent("g1", "g", 40)]);
    given()
        .and([spent("g2", "g", 60)])
        .when(spend("g1", 41))
        .then_rejected("limit-exceeded", "40 of 100 are left for today");
}

#[test]
fn events_and_commands_have_a_time() {
    given()
        .at(DAY - 1)
        .and([spent("g2", "g", 60)])
        .at(DAY)
        .when(spend("g1", 100))
        .then([spent("g1", "g", 100)]);
}

#[test]
fn commands_have_a_principal() {
    given().by("bob").when(spend("h1", 1)).then([spent("h1", "h", 1)]);
    given().when(spend("h1", 1)).then_rejected("not-the-owner", r#"Account "h1" is not yours"#);
}

#[test]
fn what_would_make_an_invalid_tag_is_refused() {
    given()
        .when(spend("g1 ", 1))
        .then_rejected("invalid-command", r#"the tag "account:g1 " must not begin or end with white space"#);
    let long = "x".repeat(193);
    given().when(spend(&long, 1)).then_rejected(
        "invalid-command",
        &format!(r#"the tag "account:{long}" has 201 bytes, 200 is the most"#),
    );
}

#[test]
fn commands_that_are_not_handled_are_refused() {
    given()
        .when_sent("earn", "{}")
        .then_rejected("invalid-command", "unknown variant `earn`, expected `spend`");
}

#[test]
#[should_panic = "the decision depends on events outside its boundary"]
fn a_boundary_that_misses_a_type_is_found() {
    FAULT.set(Some(Fault::ForgetsAType));
    given().and([spent("g2", "g", 60)]).when(spend("g1", 41)).then_rejected("limit-exceeded", "");
}

#[test]
#[should_panic = "the decision depends on events outside its boundary"]
fn a_model_that_counts_what_does_not_concern_it_is_found() {
    FAULT.set(Some(Fault::CountsOtherGroups));
    given().and([spent("h1", "h", 60)]).when(spend("g1", 41)).then([spent("g1", "g", 41)]);
}

#[test]
#[should_panic = "a query item has at least one event type and one tag"]
fn an_unscoped_boundary_is_found() {
    FAULT.set(Some(Fault::HasNoTag));
    given().when(spend("g1", 1)).then([]);
}

#[test]
fn a_decision_can_tell_that_it_widened_to_what_no_event_matches() {
    let opened = Event::AccountOpened { account: "x1".into(), group: "x".into(), owner: "ada".into() };
    Spending::given([opened])
        .by("ada")
        .when(spend("x1", 1))
        .then_rejected("group-unknown", r#"Group "x" was never formed"#);
}

#[test]
#[should_panic = "the handler widened its boundary by nothing new"]
fn a_boundary_that_widens_by_what_it_covers_is_found() {
    FAULT.set(Some(Fault::WidensByNothing));
    let _ = given().by("ada").when(spend("g1", 30));
}

#[test]
#[should_panic = "the handler widened its boundary more than 4 times"]
fn a_boundary_that_never_stops_to_widen_is_found() {
    FAULT.set(Some(Fault::WidensForEver));
    given().when(spend("g1", 1)).then([]);
}

#[test]
#[should_panic = "\
- expected
+ answered

- MoneySpent {\"account\":\"g1\",\"group\":\"g\",\"amount\":2} [account:g1, group:g]
+ MoneySpent {\"account\":\"g1\",\"group\":\"g\",\"amount\":1} [account:g1, group:g]
- MoneySpent {\"account\":\"g2\",\"group\":\"g\",\"amount\":3} [account:g2, group:g]"]
fn another_answer_is_shown_line_by_line() {
    given().when(spend("g1", 1)).then([spent("g1", "g", 2), spent("g2", "g", 3)]);
}
