//! Faults to plant in a store under test, to show that the check finds them.
//!
//! A fault is a small edit of functions in the store's database, so the product knows nothing of it. An edit replaces
//! text that must be there exactly once: when the functions change, the edit has to be written again, and says so.
//!
//! Where a fault would show too rarely by itself, the edit also makes some transactions slow at the moment that matters.

use anyhow::{Context, Result, ensure};

use super::database::Database;
use super::evidence::Strategy::{self, Boundary, Global, Hybrid, Staging};

pub(super) struct Fault {
    pub(super) name: &'static str,
    plantings: &'static [Planting],
}

/// What a fault is under some of the strategies.
struct Planting {
    strategies: &'static [Strategy],
    edits: &'static [Edit],
}

enum Edit {
    /// In this function, the first text becomes the second one.
    Text(&'static str, &'static str, &'static str),
    /// The function looks at the snapshot of the statement that calls it.
    Stable(&'static str),
    /// Each statement of the function takes a snapshot of its own.
    Volatile(&'static str),
}

use Edit::{Stable, Text, Volatile};

/// Transactions hold their locks for a while and commit in another order than they have written in.
const SLOW_END: (&str, &str) = (
    "    RETURN ROW(statuses, ",
    "    PERFORM pg_sleep(CASE WHEN random() < 0.3 THEN 0.02 ELSE 0 END);\n    RETURN ROW(statuses, ",
);

/// What is staged stays so for a while.
const SLOW_FLUSH: (&str, &str) = (
    "    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 2);\n",
    "    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 2);\n    PERFORM pg_sleep(1) FROM (SELECT FROM staging LIMIT 1) AS s;\n",
);

const LOCK_AND_CHECK: &str = "    PERFORM lock_keys(a);
    IF a.unscoped_allowed THEN
        PERFORM lock_store(exclusive => a.unscoped);
    END IF;
    statuses := judge(a);
";

const LOCK_AND_CHECK_AT_ONCE: &str =
    "    statuses := (SELECT judge(a) FROM (SELECT lock_keys(a) OFFSET 0) AS l);\n";

pub(super) const FAULTS: [Fault; 7] = [
    Fault {
        name: "no-locks",
        plantings: &[
            Planting {
                strategies: &[Global],
                edits: &[Text("append_global", "    PERFORM lock_store(exclusive => true);\n", "")],
            },
            Planting {
                strategies: &[Boundary, Hybrid, Staging],
                edits: &[Text(
                    "lock_keys",
                    "CASE WHEN l.exclusive THEN pg_advisory_xact_lock(l.key) \
                     ELSE pg_advisory_xact_lock_shared(l.key) END",
                    "l.key",
                )],
            },
        ],
    },
    // The check must look at the snapshot of the statement that locks, and so be STABLE.
    Fault {
        name: "lock-and-check-in-one-statement",
        plantings: &[
            Planting {
                strategies: &[Global],
                edits: &[
                    Text(
                        "append_global",
                        "    PERFORM lock_store(exclusive => true);\n    statuses := judge(a);\n",
                        "    statuses := (SELECT judge(a) \
                         FROM (SELECT lock_store(exclusive => true) OFFSET 0) AS l);\n",
                    ),
                    Stable("judge"),
                    Stable("refused_clauses"),
                    Stable("conflicting_clauses"),
                    Stable("conflicting_unscoped_clauses"),
                    Stable("unseen_batch_mates"),
                ],
            },
            Planting {
                strategies: &[Boundary],
                edits: &[
                    Text("append_boundary", LOCK_AND_CHECK, LOCK_AND_CHECK_AT_ONCE),
                    Stable("judge"),
                    Stable("refused_clauses"),
                    Stable("conflicting_clauses"),
                    Stable("conflicting_unscoped_clauses"),
                    Stable("unseen_batch_mates"),
                ],
            },
            Planting {
                strategies: &[Hybrid],
                edits: &[
                    Text(
                        "append_hybrid",
                        "    PERFORM lock_keys(a);
    IF a.unscoped THEN
        PERFORM lock_store(exclusive => true);
    END IF;
    statuses := judge(a);
",
                        LOCK_AND_CHECK_AT_ONCE,
                    ),
                    Stable("judge"),
                    Stable("refused_clauses"),
                    Stable("conflicting_clauses"),
                    Stable("conflicting_unscoped_clauses"),
                    Stable("unseen_batch_mates"),
                ],
            },
            Planting {
                strategies: &[Staging],
                edits: &[
                    Text("append_staging", LOCK_AND_CHECK, LOCK_AND_CHECK_AT_ONCE),
                    Stable("judge"),
                    Stable("refused_clauses"),
                    Stable("conflicting_clauses"),
                    Stable("conflicting_unscoped_clauses"),
                    Stable("unseen_batch_mates"),
                ],
            },
        ],
    },
    // Of an event's keys only the first one, and of a condition's all. (`global` locks no tags.)
    Fault {
        name: "lock-one-tag",
        plantings: &[Planting {
            strategies: &[Boundary, Hybrid, Staging],
            edits: &[Text(
                "lock_keys",
                "FROM unnest(a.lock_keys, a.lock_exclusive) AS u (key, exclusive)\n",
                "FROM (SELECT u.key, u.exclusive FROM unnest(a.lock_keys, a.lock_exclusive) AS u (key, exclusive)
                        WHERE u.key <> ALL (ARRAY(SELECT unnest(e.keys::bigint[]) FROM unnest(a.event_keys) AS e (keys)))
                       UNION ALL
                       SELECT (e.keys::bigint[])[1], true FROM unnest(a.event_keys) AS e (keys)
                       UNION ALL
                       SELECT (c.keys::bigint[])[1], false FROM unnest(a.clause_keys) AS c (keys)) AS u\n",
            )],
        }],
    },
    // The highest staged id, or position, that the read saw under any clause, for all of them.
    Fault {
        name: "one-high-water-mark",
        plantings: &[
            Planting {
                strategies: &[Staging],
                edits: &[
                    Text(
                        "conflicting_clauses",
                        "k.staged_id <> ALL (c.seen)",
                        "k.staged_id > (SELECT coalesce(max(i.id), 0)
                                          FROM unnest(a.clause_seen) AS s (ids), unnest(s.ids::bigint[]) AS i (id))",
                    ),
                    Text(
                        "conflicting_clauses",
                        "coalesce(e.staged_id, 0) <> ALL (c.seen)",
                        "coalesce(e.staged_id, 0) > (SELECT coalesce(max(i.id), 0)
                                          FROM unnest(a.clause_seen) AS s (ids), unnest(s.ids::bigint[]) AS i (id))",
                    ),
                    Text("append_staging", SLOW_END.0, SLOW_END.1),
                    Text("flush", SLOW_FLUSH.0, SLOW_FLUSH.1),
                ],
            },
            Planting {
                strategies: &[Boundary],
                edits: &[
                    Text(
                        "conflicting_clauses",
                        "k.position > c.after",
                        "k.position > (SELECT max(t.after) FROM unnest(a.clause_after) AS t (after))",
                    ),
                    Text("append_boundary", SLOW_END.0, SLOW_END.1),
                ],
            },
        ],
    },
    // The events first, and then how far the log has come.
    Fault {
        name: "read-in-two-snapshots",
        plantings: &[Planting {
            strategies: &Strategy::ALL,
            edits: &[
                Volatile("decision_read"),
                Text(
                    "decision_read",
                    "    RETURN QUERY\n    SELECT after, whole,\n",
                    "    PERFORM pg_sleep(random() * 0.005);
    present_head := (SELECT coalesce(max(e.position), 0) FROM events e);
    after := ARRAY(SELECT CASE WHEN by_key AND cardinality(c.keys) > 0
                               THEN coalesce((SELECT max(k.position) FROM event_keys k WHERE k.key = c.keys[1]), 0)
                               ELSE present_head END
                     FROM (SELECT c.keys::bigint[] AS keys, c.n
                             FROM unnest(clause_keys) WITH ORDINALITY AS c (keys, n)) AS c
                    ORDER BY c.n);
    RETURN QUERY\n    SELECT after, whole,\n",
                ),
            ],
        }],
    },
    Fault {
        name: "xid-before-locks",
        plantings: &[Planting {
            strategies: &[Boundary],
            edits: &[Text(
                "append_boundary",
                "    PERFORM lock_keys(a);\n",
                "    PERFORM pg_current_xact_id();\n    PERFORM lock_keys(a);\n",
            )],
        }],
    },
    // By position, up to the end, as if positions became visible in their order.
    Fault {
        name: "follow-by-position",
        plantings: &[Planting {
            strategies: &[Boundary],
            edits: &[
                Text(
                    "log_page_by_xid",
                    "(e.xid, e.position) > (log_page_by_xid.after_xid::text::xid8, log_page_by_xid.after)",
                    "e.position > log_page_by_xid.after",
                ),
                Text(
                    "log_page_by_xid",
                    "CASE WHEN until IS NULL THEN e.xid < horizon ELSE",
                    "CASE WHEN until IS NULL THEN true ELSE",
                ),
                Text(
                    "log_page_by_xid",
                    "ORDER BY e.xid, e.position\n                         LIMIT",
                    "ORDER BY e.position\n                         LIMIT",
                ),
                Text("log_page_by_xid", "OVER (ORDER BY e.xid, e.position)", "OVER (ORDER BY e.position)"),
                Text("log_page_by_xid", "ORDER BY w.xid, w.position", "ORDER BY w.position"),
                Text(
                    "log_page_by_xid",
                    "ORDER BY e.xid, e.position\n     LIMIT page",
                    "ORDER BY e.position\n     LIMIT page",
                ),
                Text("append_boundary", SLOW_END.0, SLOW_END.1),
            ],
        }],
    },
];

impl Fault {
    pub(super) fn concerns(&self, strategy: Strategy) -> bool {
        self.edits(strategy).is_some()
    }

    /// Plants the fault in a store that has no host yet.
    pub(super) fn plant(&self, database: &Database<'_>, strategy: Strategy) -> Result<()> {
        let edits = self.edits(strategy).with_context(|| format!("{} is none of {strategy}", self.name))?;
        for edit in edits {
            match edit {
                Text(function, old, new) => {
                    let text = definition(database, function)?;
                    let text = edited(&text, old, new)
                        .with_context(|| format!("the fault {}, in {function}()", self.name))?;
                    database.run(&text)?;
                }
                Stable(function) => database.run(&format!("ALTER FUNCTION weir.{function} STABLE"))?,
                Volatile(function) => database.run(&format!("ALTER FUNCTION weir.{function} VOLATILE"))?,
            }
        }
        Ok(())
    }

    fn edits(&self, strategy: Strategy) -> Option<&'static [Edit]> {
        let planting = self.plantings.iter().find(|planting| planting.strategies.contains(&strategy));
        planting.map(|planting| planting.edits)
    }
}

fn definition(database: &Database<'_>, function: &str) -> Result<String> {
    let lines = database.ask(&format!("SELECT pg_get_functiondef('weir.{function}'::regproc)"))?;
    Ok(lines.join("\n"))
}

fn edited(text: &str, old: &str, new: &str) -> Result<String> {
    let times = text.matches(old).count();
    ensure!(times == 1, "this text must be there once, and is {times} times; write the fault again: {old}");
    Ok(text.replace(old, new))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use super::*;
    use crate::workspaces::root;

    #[test]
    fn a_text_that_is_there_once_is_replaced_and_no_other() {
        assert_eq!(edited("lock; check;", "lock;", "").unwrap(), " check;");
        assert!(edited("check;", "lock;", "").is_err());
        assert!(edited("lock; lock;", "lock;", "").is_err());
    }

    /// So that whoever changes a function hears of the fault that has to be changed with it.
    #[test]
    fn every_fault_can_be_planted_in_the_functions_as_they_are() {
        let mut functions: HashMap<String, String> = HashMap::new();
        for file in fs::read_dir(root().join("migrations")).unwrap() {
            let sql = fs::read_to_string(file.unwrap().path()).unwrap();
            for definition in sql.split("\nCREATE FUNCTION ").skip(1) {
                let name = definition.split('(').next().unwrap();
                let end = definition.find("\n$$;").map_or(definition.len(), |end| end + 4);
                functions.insert(name.to_owned(), definition[..end].to_owned());
            }
        }
        for Fault { name, plantings } in &FAULTS {
            for planting in *plantings {
                let mut functions = functions.clone();
                for edit in planting.edits {
                    match edit {
                        Text(function, old, new) => {
                            let text = functions.get_mut(*function).unwrap_or_else(|| panic!("{function}"));
                            *text = edited(text, old, new).unwrap_or_else(|error| panic!("{name}: {error}"));
                        }
                        Stable(function) | Volatile(function) => {
                            assert!(functions.contains_key(*function), "{name}: {function}");
                        }
                    }
                }
            }
        }
    }
}
