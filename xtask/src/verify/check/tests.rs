//! Each rule is shown evidence that breaks just it, because a check that cannot fail checks nothing.

use std::time::Duration;

use super::super::evidence::{
    Answer, Condition, Delivered, Epoch, Event, Followed, Item, LineHash, Logged, Query, Read, Seen, Strategy,
};
use super::*;

/// A log and what was said about it: at first, three appends of which the second has read the first, a conflict, and nothing
/// to complain of.
struct World {
    evidence: Evidence,
    /// Seconds since the run began. An append takes one from being sent to being acknowledged, and then one passes.
    now: u64,
}

impl World {
    fn sound_under(strategy: Strategy) -> Self {
        let epochs = vec![Epoch { after: 0, strategy }];
        let mut world = Self { evidence: Evidence { epochs, ..Evidence::default() }, now: 0 };
        world.append(None, vec![event(1, "A", &["x:1"])]);
        let read = world.read(query("A", &["x:1"]));
        world.append(Some(read), vec![event(2, "A", &["x:1", "y:1"]), event(3, "B", &[])]);
        let stale = world.read(query("A", &["x:1"]));
        world.append(Some(world.read(query("B", &["y:1"]))), vec![event(4, "A", &["x:1", "y:1"])]);
        world.fail(Some(stale), vec![event(5, "A", &["x:1"])], Answer::Conflict);
        world
    }

    fn sound() -> Self {
        Self::sound_under(Strategy::Staging)
    }

    /// The events are appended and logged.
    fn append(&mut self, condition: Option<Condition>, events: Vec<Event>) {
        for event in &events {
            self.log(event.clone());
        }
        self.fail(condition, events, Answer::Appended);
    }

    /// The events are not logged, whatever the answer.
    fn fail(&mut self, condition: Option<Condition>, events: Vec<Event>, answer: Answer) {
        let sent = Duration::from_secs(self.now);
        let acknowledged = (answer == Answer::Appended).then(|| sent + Duration::from_secs(1));
        self.now += 2;
        let (command_id, answers) = (Some("id".to_owned()), vec![answer]);
        self.evidence.appends.push(Append { command_id, events, condition, sent, acknowledged, answers });
    }

    fn log(&mut self, event: Event) {
        let position = self.evidence.log.iter().map(|logged| logged.position).max().unwrap_or(0) + 1;
        let line = LineHash::of(&event.id.to_string());
        self.evidence.log.push(Logged { event, position, command_id: "id".to_owned(), line });
    }

    /// A read that shows what is in the log now.
    fn read(&self, query: Query) -> Condition {
        let matching = self.evidence.log.iter().filter(|logged| query.matches(&logged.event));
        let seen =
            matching.map(|logged| Seen { id: logged.event.id, position: Some(logged.position) }).collect();
        Condition::NothingSince(Read { query, beyond: 0, began: Duration::from_secs(self.now), seen })
    }

    fn seen(&mut self, append: usize) -> &mut Vec<Seen> {
        match &mut self.evidence.appends[append].condition {
            Some(Condition::NothingSince(read)) => &mut read.seen,
            _ => panic!("it has not read"),
        }
    }

    /// Follows the log as it is now.
    fn follow(&mut self, tags: &[&str]) -> &mut Vec<Delivered> {
        let mut followed = Followed {
            name: "somebody".to_owned(),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            delivered: Vec::new(),
        };
        let log = self.evidence.log.iter().filter(|logged| followed.wants(&logged.event));
        followed.delivered = log.map(|logged| Delivered { id: logged.event.id, line: logged.line }).collect();
        self.evidence.followers.push(followed);
        &mut self.evidence.followers.last_mut().unwrap().delivered
    }

    fn broken(&self) -> Vec<&'static str> {
        let verdict = check(&self.evidence);
        let broken: Vec<_> = verdict.rules.iter().filter(|rule| !rule.broken.is_empty()).collect();
        assert_eq!(verdict.violations() == 0, broken.is_empty());
        broken.into_iter().map(|rule| rule.text).collect()
    }

    #[track_caller]
    fn is_sound(&self) {
        let verdict = check(&self.evidence);
        let broken: Vec<_> = verdict.rules.iter().flat_map(|rule| &rule.broken).collect();
        assert!(broken.is_empty(), "{broken:?}");
    }

    /// Asserts that this rule is broken, whether or not others are too.
    #[track_caller]
    fn breaks(&self, text: &str) {
        let broken = self.broken();
        assert!(broken.contains(&text), "{broken:?}");
    }

    /// Asserts that this rule is broken and no other.
    #[track_caller]
    fn breaks_only(&self, text: &str) {
        assert_eq!(self.broken(), [text]);
    }
}

fn event(n: u32, event_type: &str, tags: &[&str]) -> Event {
    Event {
        id: EventId::of(1, n),
        event_type: event_type.to_owned(),
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        data: format!(r#"{{"id":{n}}}"#),
        metadata: None,
    }
}

fn item(types: &[&str], tags: &[&str]) -> Item {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Item { types: owned(types), tags: owned(tags) }
}

fn query(event_type: &str, tags: &[&str]) -> Query {
    Query { items: vec![item(&[event_type], tags)] }
}

const ONCE: &str = "Each event and each position is in the log once";
const MISSING: &str = "No position is missing, but under `boundary`";
const FALLING: &str = "Positions rise, but under `boundary`";
const KEPT: &str = "What was acknowledged is in the log, in its own order";
const NOTHING_MORE: &str =
    "What was refused is not in the log, and what was lost is there whole or not at all";
const VERBATIM: &str = "Every event of the log is as it was sent";
const TOGETHER: &str = "Under `global` and `hybrid` the events of an append stand together";
const TWO_ANSWERS: &str = "An append is not answered in two ways";
const IN_ORDER: &str = "Each condition holds at its append's place in the log";
const BY_POSITION: &str = "Each condition holds at its append's place by position, too";
const GROUNDLESS: &str = "A conflict has an event for its reason";
const PHANTOMS: &str = "A read shows events of the log, each once";
const STALE: &str = "A read shows what was acknowledged before it began";
const DISORDER: &str = "A read shows the events of a boundary in the order of the log";
const BOUNDARIES: &str = "The events of a boundary stand in the order in which they were appended";
const FOLLOWERS: &str = "Each follower was sent each event once, in the order of the log";
const SURPRISES: &str = "Every answer is one that the run explains";

#[test]
fn sound_evidence_breaks_nothing_under_any_strategy() {
    for strategy in Strategy::ALL {
        let mut world = World::sound_under(strategy);
        world.follow(&[]);
        world.follow(&["y:1"]);
        world.is_sound();
    }
}

#[test]
fn an_event_that_is_there_twice() {
    let mut world = World::sound();
    world.log(event(4, "A", &["x:1", "y:1"]));
    world.breaks(ONCE);
}

#[test]
fn a_position_that_is_there_twice() {
    let mut world = World::sound();
    world.evidence.log[3].position = 3;
    world.breaks(ONCE);
}

#[test]
fn a_position_that_is_missing() {
    let mut world = World::sound();
    world.evidence.log[3].position = 6;
    assert_eq!(check(&world.evidence).gaps, 2);
    world.breaks_only(MISSING);
}

#[test]
fn a_log_that_does_not_begin_at_one() {
    let mut world = World::sound();
    for n in 1..4 {
        world.seen(n).clear();
    }
    world.evidence.appends.clear();
    world.evidence.log.drain(..1);
    world.breaks(MISSING);
}

#[test]
fn a_position_that_is_missing_under_boundary() {
    let mut world = World::sound_under(Strategy::Boundary);
    world.evidence.log[3].position = 6;
    assert_eq!(check(&world.evidence).gaps, 2);
    world.is_sound();
}

#[test]
fn gaps_belong_to_the_epoch_in_which_they_lie() {
    let mut world = World::sound();
    world.evidence.epochs = vec![
        Epoch { after: 0, strategy: Strategy::Staging },
        Epoch { after: 1, strategy: Strategy::Boundary },
        Epoch { after: 3, strategy: Strategy::Hybrid },
    ];
    world.is_sound();
    world.evidence.epochs[2].after = 5;
    world.evidence.log[3].position = 6;
    world.is_sound();
    world.evidence.epochs[2].after = 4;
    world.breaks_only(MISSING);
}

#[test]
fn a_position_that_falls() {
    let mut world = World::sound();
    let unrelated = event(6, "B", &["z:1"]);
    world.append(None, vec![unrelated]);
    world.evidence.log.swap(3, 4);
    assert_eq!(check(&world.evidence).out_of_order, 1);
    world.breaks_only(FALLING);
    world.evidence.epochs[0].strategy = Strategy::Boundary;
    world.is_sound();
}

#[test]
fn an_acknowledged_event_that_is_missing() {
    let mut world = World::sound();
    world.evidence.log.pop();
    world.breaks(KEPT);
}

#[test]
fn an_append_whose_events_stand_in_another_order() {
    let mut world = World::sound();
    world.evidence.appends[1].events.swap(0, 1);
    world.breaks_only(KEPT);
}

#[test]
fn an_event_of_an_append_that_met_a_conflict() {
    let mut world = World::sound();
    world.log(event(5, "A", &["x:1"]));
    world.breaks(NOTHING_MORE);
}

#[test]
fn an_event_of_an_append_that_was_refused() {
    let mut world = World::sound();
    world.fail(None, vec![event(6, "A", &[])], Answer::Refused);
    world.is_sound();
    world.log(event(6, "A", &[]));
    world.breaks_only(NOTHING_MORE);
}

#[test]
fn a_lost_append_may_be_there_or_not_but_not_in_part() {
    let mut world = World::sound();
    world.fail(None, vec![event(6, "A", &[]), event(7, "A", &[])], Answer::Lost);
    world.is_sound();
    world.log(event(6, "A", &[]));
    world.breaks_only(NOTHING_MORE);
    world.log(event(7, "A", &[]));
    world.is_sound();
}

#[test]
fn an_event_that_says_something_else_than_was_sent() {
    let changes: [fn(&mut Logged); 4] = [
        |logged| logged.event.data.push(' '),
        |logged| logged.event.metadata = Some("{}".to_owned()),
        |logged| logged.event.event_type = "C".to_owned(),
        |logged| logged.command_id = "another".to_owned(),
    ];
    for change in changes {
        let mut world = World::sound();
        change(&mut world.evidence.log[2]);
        world.breaks_only(VERBATIM);
    }
}

#[test]
fn an_event_that_nobody_has_sent() {
    let mut world = World::sound();
    world.log(event(99, "A", &[]));
    world.breaks_only(VERBATIM);
}

#[test]
fn an_append_that_is_torn_apart() {
    let mut world = World::sound_under(Strategy::Global);
    world.append(None, vec![event(6, "C", &[]), event(7, "C", &[])]);
    world.append(None, vec![event(8, "C", &[])]);
    world.is_sound();
    world.evidence.log.swap(5, 6);
    world.evidence.log[5].position = 6;
    world.evidence.log[6].position = 7;
    world.breaks_only(TOGETHER);
    world.evidence.epochs[0].strategy = Strategy::Staging;
    world.is_sound();
}

#[test]
fn an_append_that_is_answered_in_two_ways() {
    let mut world = World::sound();
    world.evidence.appends[2].answers.push(Answer::Conflict);
    world.breaks(TWO_ANSWERS);
}

#[test]
fn an_append_that_is_answered_twice_in_one_way() {
    let mut world = World::sound();
    world.evidence.appends[2].answers = vec![Answer::Lost, Answer::Appended, Answer::Appended];
    world.is_sound();
}

#[test]
fn a_condition_that_has_missed_an_event() {
    let mut world = World::sound();
    world.seen(1).clear();
    world.evidence.appends[0].acknowledged = None;
    world.breaks_only(IN_ORDER);
}

#[test]
fn a_condition_that_holds_by_the_order_of_the_log_alone() {
    // Not seen and behind it, but at a lower position.
    let mut world = World::sound_under(Strategy::Boundary);
    let read = world.read(query("A", &["z:1"]));
    world.append(Some(read), vec![event(6, "B", &["z:1"])]);
    world.fail(None, vec![event(7, "A", &["z:1"])], Answer::Lost);
    world.log(event(7, "A", &["z:1"]));
    world.is_sound();
    (world.evidence.log[4].position, world.evidence.log[5].position) = (6, 5);
    world.breaks_only(BY_POSITION);
}

#[test]
fn a_condition_without_a_read_is_broken_by_anything_that_matches() {
    let mut world = World::sound();
    let nothing_after = |position| Some(Condition::NothingAfter(query("A", &["x:1"]), position));
    world.append(nothing_after(4), vec![event(6, "B", &[])]);
    world.is_sound();
    world.append(nothing_after(3), vec![event(7, "B", &[])]);
    world.breaks_only(IN_ORDER);
    world.evidence.appends.last_mut().unwrap().condition = nothing_after(0);
    world.breaks_only(IN_ORDER);
}

#[test]
fn a_condition_of_several_items_without_types_or_tags() {
    let items = [item(&["A"], &[]), item(&[], &["y:1"]), item(&[], &[])];
    for item in items {
        let mut world = World::sound();
        let also = self::item(&["C"], &["z:1"]);
        let read = world.read(Query { items: vec![also, item] });
        world.append(Some(read), vec![event(6, "B", &[])]);
        world.is_sound();
        world.seen(4).pop();
        world.breaks(IN_ORDER);
    }
}

#[test]
fn a_read_of_the_end_of_the_log_says_nothing_of_the_rest() {
    let mut world = World::sound();
    let Condition::NothingSince(mut read) = world.read(query("A", &["x:1"])) else { unreachable!() };
    read.beyond = 2;
    read.seen.retain(|seen| seen.position > Some(2));
    world.append(Some(Condition::NothingSince(read)), vec![event(6, "B", &[])]);
    world.is_sound();
    world.seen(4).clear();
    world.breaks(IN_ORDER);
}

#[test]
fn a_conflict_without_a_reason() {
    let mut world = World::sound();
    let fresh = world.read(query("A", &["x:1"]));
    world.fail(Some(fresh), vec![event(6, "A", &["x:1"])], Answer::Conflict);
    world.breaks_only(GROUNDLESS);
}

#[test]
fn a_conflict_without_a_condition() {
    let mut world = World::sound();
    world.fail(None, vec![event(6, "A", &["x:1"])], Answer::Conflict);
    world.breaks_only(GROUNDLESS);
}

#[test]
fn a_read_of_an_event_that_never_came_to_be() {
    let mut world = World::sound();
    world.seen(3).push(Seen { id: EventId::of(9, 9), position: None });
    world.breaks_only(PHANTOMS);
}

#[test]
fn a_read_that_shows_an_event_twice_or_elsewhere_or_unasked() {
    let mut world = World::sound();
    let first = world.seen(1)[0];
    world.seen(1).push(first);
    world.breaks_only(PHANTOMS);
    world.seen(1).pop();
    world.seen(1)[0].position = Some(7);
    world.breaks_only(PHANTOMS);
    world.seen(1)[0].position = None;
    world.is_sound();
    world.seen(3).push(Seen { id: EventId::of(1, 3), position: None });
    world.breaks_only(PHANTOMS);
}

#[test]
fn a_read_that_misses_what_was_known_before() {
    let mut world = World::sound();
    world.seen(3).pop();
    world.breaks_only(STALE);
    world.evidence.appends[1].acknowledged = None;
    world.is_sound();
}

#[test]
fn a_read_in_another_order_than_the_log() {
    let mut world = World::sound();
    world.seen(3).reverse();
    world.breaks_only(DISORDER);
}

#[test]
fn events_of_a_boundary_in_another_order_than_they_were_appended_in() {
    let mut world = World::sound();
    world.append(None, vec![event(6, "C", &["z:1"])]);
    world.append(None, vec![event(7, "C", &["z:1"])]);
    world.is_sound();
    world.evidence.log.swap(4, 5);
    (world.evidence.log[4].position, world.evidence.log[5].position) = (5, 6);
    world.breaks_only(BOUNDARIES);
    // Nobody can say, if the second was sent before the first was acknowledged.
    world.evidence.appends[5].sent = world.evidence.appends[4].sent;
    world.is_sound();
}

#[test]
fn events_of_a_boundary_whose_positions_contradict_the_order_of_the_log() {
    let mut world = World::sound_under(Strategy::Boundary);
    world.append(None, vec![event(6, "C", &["z:1"])]);
    world.append(None, vec![event(7, "C", &["z:1"])]);
    (world.evidence.log[4].position, world.evidence.log[5].position) = (6, 5);
    world.breaks_only(BOUNDARIES);
}

#[test]
fn a_follower_who_was_sent_something_else_than_the_log() {
    let changes: [fn(&mut Vec<Delivered>); 7] = [
        |delivered| delivered.truncate(2),
        |delivered| delivered.rotate_left(1),
        |delivered| _ = delivered.remove(1),
        |delivered| delivered.push(delivered[0]),
        |delivered| delivered.swap(1, 2),
        |delivered| delivered[1].id = EventId::of(9, 9),
        |delivered| delivered[1].line = LineHash::of("another text"),
    ];
    for change in changes {
        let mut world = World::sound();
        change(world.follow(&[]));
        world.breaks_only(FOLLOWERS);
    }
}

#[test]
fn a_follower_who_was_sent_what_it_has_not_asked_for() {
    let mut world = World::sound();
    world.follow(&[]);
    world.evidence.followers[0].tags.push("y:1".to_owned());
    world.breaks_only(FOLLOWERS);
}

#[test]
fn an_answer_that_nothing_explains() {
    let mut world = World::sound();
    world.evidence.surprises.push("500".to_owned());
    world.breaks_only(SURPRISES);
}
