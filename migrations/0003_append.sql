-- Stages events, if no event matches the condition that the read behind `after` and `seen` did not show.
--
-- One call is one round trip, one transaction and, at its end, one commit. It answers with a status:
--   appended   the events are durable once this statement has returned
--   conflict   an event that matches the condition has come in since the read; nothing was written
--   isolation  the connection does not run at READ COMMITTED; nothing was written
--
-- 1. Locks. `lock_keys` holds the keys of all events to be written (exclusive) and of all clauses of the
--    condition (shared is enough). An event is written under the keys of all its tags, a clause looks under
--    one of its keys, and so two appends of which one writes what the other must not miss share a key. Each
--    key is locked once, in its strongest mode, in the order of the number that is really locked:
--    transactions that need several wait in one order and never for each other in a circle. The inner query
--    is fenced by OFFSET 0, so that the planner cannot call the lock function in another order.
-- 2. Check. It must be a statement of its own that begins after the locks are held: under READ COMMITTED it
--    then sees all that was committed by whoever held them before. A statement that both locked and checked
--    would look at a snapshot from before it waited. (This is why a stricter isolation level is refused.)
--    A match is new if it is staged and the read did not see its id, or flushed past the read's head and
--    not one that the read saw staged. One high-water mark of staged ids would not do: a lower id under
--    another key of the same boundary may commit later.
--    Staging and events are looked at in one statement: a flush can't hide a row between two.
-- 3. Insert. The ids are assigned under the locks and in the order of the arrays.
CREATE FUNCTION append(
    lock_keys bigint[], lock_exclusive boolean[],
    clause_keys bigint[], clause_types text[], clause_tags text[], after bigint, seen bigint[],
    new_types text[], new_tags text[], new_keys text[], new_data text[],
    command_id text, correlation_id text, causation_id text, version_id integer
) RETURNS text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN 'isolation';
    END IF;

    PERFORM CASE WHEN l.exclusive THEN pg_advisory_xact_lock(l.key) ELSE pg_advisory_xact_lock_shared(l.key) END
       FROM (SELECT u.key # store_salt() AS key, bool_or(u.exclusive) AS exclusive
               FROM unnest(lock_keys, lock_exclusive) AS u (key, exclusive)
              GROUP BY 1 ORDER BY 1 OFFSET 0) AS l;

    IF EXISTS (
        SELECT FROM unnest(clause_keys, clause_types, clause_tags) AS c (key, type, tags)
         WHERE EXISTS (SELECT FROM staged_keys k JOIN staging s ON s.id = k.staged_id
                        WHERE k.key = c.key AND k.staged_id <> ALL (append.seen)
                          AND s.type = c.type AND s.tags @> c.tags::text[])
            OR EXISTS (SELECT FROM event_keys k JOIN events e ON e.position = k.position
                        WHERE k.key = c.key AND k.position > append.after
                          AND e.staged_id <> ALL (append.seen)
                          AND e.type = c.type AND e.tags @> c.tags::text[]))
    THEN
        RETURN 'conflict';
    END IF;

    WITH staged AS (
        INSERT INTO staging (type, tags, keys, data, command_id, correlation_id, causation_id, version_id)
        SELECT e.type, e.tags::text[], e.keys::bigint[], e.data::json,
               append.command_id, append.correlation_id, append.causation_id, append.version_id
          FROM unnest(new_types, new_tags, new_keys, new_data)
               WITH ORDINALITY AS e (type, tags, keys, data, ordinal)
         ORDER BY e.ordinal
        RETURNING id, keys
    )
    INSERT INTO staged_keys (key, staged_id) SELECT k.key, s.id FROM staged s CROSS JOIN unnest(s.keys) AS k (key);

    RETURN 'appended';
END
$$;
