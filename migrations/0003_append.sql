-- Appends events, if no event matches the condition that the read behind the token did not show.
--
-- One call is one round trip, one transaction and, at its end, one commit. It answers with a status:
--   appended   the events are durable once this statement has returned
--   conflict   an event that matches the condition has come in since the read
--   repeated   an append with this id has been made before: see `outcomes`
--   strategy   the store's strategy is not the one that the caller takes it to be
--   unscoped   the condition has an item without a type or a tag, which this store does not allow
--   isolation  the connection does not run at READ COMMITTED
-- In every case but the first nothing was written.
--
-- This file has what the strategies share; each has a file of its own with the argument why it is sound. All of them
-- lock, then check, then write, and rest on these:
--
-- * The check is a statement of its own that begins after the locks are held: under READ COMMITTED it then sees
--   all that was committed by whoever held them before. A statement that both locked and checked would look at a
--   snapshot from before it waited. (This is why a stricter isolation level is refused.)
-- * An event is written under the keys of all its tags, a clause looks under one of its keys, and `lock_keys` has
--   them all: two appends of which one writes what the other must not miss share a key.
-- * A clause without a key shares none. Where the store allows it, every append also takes the lock of the whole
--   store after its keys: shared, and one with such a clause exclusive. One mode each: shared first and exclusive
--   later would deadlock.

-- What an append is asked to do.
CREATE TYPE append_request AS (
    lock_keys bigint[], lock_exclusive boolean[],
    clause_keys bigint[], clause_types text[], clause_tags text[],
    clause_after bigint[], seen bigint[], snapshot pg_snapshot,
    event_types text[], event_tags text[], event_keys text[], event_data text[],
    command_id text, correlation_id text, causation_id text, version_id integer,
    -- What was asked for, if the caller gave the command its id; NULL otherwise.
    fingerprint bytea,
    -- Whether the condition has a clause without a key, and whether the store allows any append to have one.
    unscoped boolean, unscoped_allowed boolean
);

-- Locks each key once, in its strongest mode, in the order of the number that is really locked: transactions that
-- need several wait in one order and never for each other in a circle. The inner query is fenced by OFFSET 0, so
-- that the planner cannot call the lock function in another order.
CREATE FUNCTION lock_keys(a append_request) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM CASE WHEN l.exclusive THEN pg_advisory_xact_lock(l.key) ELSE pg_advisory_xact_lock_shared(l.key) END
       FROM (SELECT u.key # store_salt() AS key, bool_or(u.exclusive) AS exclusive
               FROM unnest(a.lock_keys, a.lock_exclusive) AS u (key, exclusive)
              GROUP BY 1 ORDER BY 1 OFFSET 0) AS l;
END
$$;

-- The lock of the whole store.
CREATE FUNCTION lock_store(exclusive boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF exclusive THEN
        PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 1);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtext(current_schema()), 1);
    END IF;
END
$$;

-- Whether an event matches the condition that the read did not see. Such an event is staged and not among the ids
-- that the read saw; or it is numbered past the read's position for the clause, and was not among those ids when it
-- was staged. One high-water mark of staged ids would not do: a lower id under another key of the same
-- query may commit later. Staging and events are looked at in one statement: a flush can't hide a row between two.
CREATE FUNCTION conflicts(a append_request) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    IF NOT a.unscoped THEN
        RETURN EXISTS (
            SELECT FROM unnest(a.clause_keys, a.clause_types, a.clause_tags, a.clause_after)
                        AS c (key, type, tags, after)
             WHERE EXISTS (SELECT FROM staged_keys k JOIN staging s ON s.id = k.staged_id
                            WHERE k.key = c.key AND k.staged_id <> ALL (a.seen)
                              AND s.type = c.type AND s.tags @> c.tags::text[])
                OR EXISTS (SELECT FROM event_keys k JOIN events e ON e.position = k.position
                            WHERE k.key = c.key AND k.position > c.after
                              AND coalesce(e.staged_id, 0) <> ALL (a.seen)
                              AND e.type = c.type AND e.tags @> c.tags::text[]));
    END IF;
    -- Without a key the look-up goes by position. Where the read has left a snapshot, because positions did not
    -- become visible in order, events of that time are known by their transaction.
    RETURN EXISTS (
        SELECT FROM unnest(a.clause_types, a.clause_tags, a.clause_after) AS c (type, tags, after)
         WHERE EXISTS (SELECT FROM staging s
                        WHERE s.id <> ALL (a.seen)
                          AND (c.type IS NULL OR s.type = c.type) AND s.tags @> c.tags::text[])
            OR EXISTS (SELECT FROM events e
                        WHERE e.position > c.after AND coalesce(e.staged_id, 0) <> ALL (a.seen)
                          AND (a.snapshot IS NULL OR e.xid IS NULL)
                          AND (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags::text[])
            OR EXISTS (SELECT FROM events e
                        WHERE e.xid >= pg_snapshot_xmin(a.snapshot)
                          AND NOT pg_visible_in_snapshot(e.xid, a.snapshot)
                          AND (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags::text[]));
END
$$;

-- Why the append must not be made, as a status; NULL if it may. Called when the locks are held; what it asks are statements
-- that begin then. Appends with one id of their caller's run one after the other, because its key is among their
-- locks (under `global`, because all do): the later one finds the earlier one's answer.
CREATE FUNCTION objection(a append_request) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    IF a.fingerprint IS NOT NULL AND EXISTS (SELECT FROM outcomes o WHERE o.id = a.command_id) THEN
        RETURN 'repeated';
    END IF;
    IF conflicts(a) THEN
        RETURN 'conflict';
    END IF;
    RETURN NULL;
END
$$;

-- Writes the events to the log, at these positions.
CREATE FUNCTION write_events(a append_request, positions bigint[], xid xid8) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    INSERT INTO events (position, xid, recorded_at, version_id, type, tags,
                        command_id, correlation_id, causation_id, data, bytes)
    SELECT e.position, write_events.xid, clock_timestamp(), a.version_id, e.type, e.tags::text[],
           a.command_id, a.correlation_id, a.causation_id, e.data::json, octet_length(e.data)
      FROM unnest(positions, a.event_types, a.event_tags, a.event_data) AS e (position, type, tags, data);

    INSERT INTO event_keys (key, position)
    SELECT k.key, e.position
      FROM unnest(positions, a.event_keys) AS e (position, keys) CROSS JOIN unnest(e.keys::bigint[]) AS k (key);

    -- Only a type that has never been there is inserted; two who bring it at once wait in one order.
    INSERT INTO event_types (type)
    SELECT DISTINCT e.type FROM unnest(a.event_types) AS e (type)
     WHERE NOT EXISTS (SELECT FROM event_types t WHERE t.type = e.type)
     ORDER BY 1
    ON CONFLICT DO NOTHING;
END
$$;

-- Writes the events to the log, at the next positions. The caller holds the store's lock, exclusive, and keeps it to the
-- commit: so nobody else continues from the same position, and a rollback leaves no gap.
CREATE FUNCTION write_next_events(a append_request) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    head bigint;
BEGIN
    SELECT coalesce(max(e.position), 0) INTO head FROM events e;
    PERFORM write_events(a, ARRAY(SELECT head + n FROM generate_series(1, cardinality(a.event_types)) AS n), NULL);
END
$$;
