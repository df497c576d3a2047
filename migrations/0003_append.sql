-- Appends the events of a batch of requests: of each whose condition holds, which is that no event matches it that the
-- read behind its token did not show.
--
-- One call is one round trip, one transaction and, at its end, one commit. It answers with a status for each request, and with where the events are:
--   appended   its events are durable once this statement has returned
--   conflict   an event that matches its condition has come in since the read
--   undermined a request that it builds on was not appended
--   repeated   an append with this id has been made before: see `outcomes`
--   unscoped   its condition has an item without a type or a tag, which this store does not allow
--   position   its token is a bare position, in a part of the log where that says nothing
-- or, for all of them, with the reason why none was looked at:
--   strategy   the store's strategy is not the one that the caller takes it to be
--   isolation  the connection does not run at READ COMMITTED
--   moved      the database has come to another cluster: see adopt_cluster()
-- In every case but the first nothing of the request was written.
--
-- This file has what the strategies share; each has a file of its own with the argument why it is sound. All of them
-- lock, then check, then write, and rest on these:
--
-- * The check is a statement of its own that begins after the locks are held: under READ COMMITTED it then sees
--   all that was committed by whoever held them before. A statement that both locked and checked would look at a
--   snapshot from before it waited. (This is why a stricter isolation level is refused.)
-- * An event is written under the keys of all its tags, a clause is locked by one of its keys, and `lock_keys` has
--   them all: two appends of which one writes what the other must not miss share a key.
-- * A clause without a key shares none. Where the store allows it, every append also takes the lock of the whole
--   store after its keys: shared, and one with such a clause exclusive. One mode each: shared first and exclusive
--   later would deadlock.
-- * The requests of a batch share its locks and its transaction, so none is hidden from another by a lock. They are
--   held against each other one by one, in their order: see judge().

-- What an append is asked to do. Clauses are those of decision_read(), each once, with what its read saw; a request names
-- its clauses, counted from 1. A list of lists travels as a list of array literals.
CREATE TYPE append_batch AS (
    lock_keys bigint[], lock_exclusive boolean[],
    clause_keys text[], clause_types text[], clause_tags text[],
    clause_after bigint[], clause_seen text[], clause_snapshots text[],
    -- For each request: its clauses, and the earlier requests of the batch whose events its decision has seen.
    clauses text[], builds_on text[],
    command_ids text[], correlation_ids text[], causation_ids text[], version_ids integer[],
    -- What was asked for, if the caller gave the request its id; NULL otherwise.
    fingerprints bytea[],
    -- For each event.
    event_requests integer[], event_types text[], event_tags text[], event_keys text[],
    event_data text[], event_metadata text[],
    -- When they are recorded: NULL for now.
    recorded_at timestamptz,
    -- Whether some condition has a clause without a key, and whether the store allows any append to have one.
    unscoped boolean, unscoped_allowed boolean
);

-- What became of it: a status for each request, and where the events that were appended are now, in their order: their
-- positions, or under `staging` their staged ids.
CREATE TYPE append_result AS (statuses text[], places bigint[]);

-- Locks each key once, in its strongest mode, in the order of the number that is really locked: transactions that
-- need several wait in one order and never for each other in a circle. The inner query is fenced by OFFSET 0, so
-- that the planner cannot call the lock function in another order.
CREATE FUNCTION lock_keys(a append_batch) RETURNS void
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

-- The clauses that an event matches which their reads did not see. Such an event is staged and not among the ids
-- that the read saw; or it is numbered past the read's position for the clause, and was not among those ids when it
-- was staged. One high-water mark of staged ids would not do: a lower id under another key of the same
-- query may commit later. Staging and events are looked at in one statement: a flush can't hide a row between two.
CREATE FUNCTION conflicting_clauses(a append_batch) RETURNS integer[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    floor CONSTANT bigint := staging_floor();
BEGIN
    RETURN ARRAY(
        SELECT c.n
          FROM (SELECT u.n::integer AS n, u.keys::bigint[] AS keys, u.type, u.tags::text[] AS tags, u.after,
                       u.seen::bigint[] AS seen, lead_key(u.keys::bigint[], u.after) AS lead
                  FROM unnest(a.clause_keys, a.clause_types, a.clause_tags, a.clause_after, a.clause_seen)
                       WITH ORDINALITY AS u (keys, type, tags, after, seen, n) OFFSET 0) AS c
         WHERE cardinality(c.keys) > 0
           AND (EXISTS (SELECT FROM staged_keys k JOIN staging s ON s.id = k.staged_id
                         WHERE k.key = c.lead AND k.staged_id > floor AND k.staged_id <> ALL (c.seen)
                           AND s.type = c.type AND s.tags @> c.tags)
                OR EXISTS (SELECT FROM event_keys k JOIN events e ON e.position = k.position
                            WHERE k.key = c.lead AND k.position > c.after
                              AND coalesce(e.staged_id, 0) <> ALL (c.seen)
                              AND e.type = c.type AND e.tags @> c.tags)))
        || CASE WHEN a.unscoped THEN conflicting_unscoped_clauses(a) ELSE '{}' END;
END
$$;

-- The same for clauses without a key, for which the look-up goes by position. Where the read has left a snapshot, because
-- positions did not become visible in order, events of that time are known by their transaction; from another epoch, in which
-- transaction ids may mean something else, the snapshot says nothing, and the clause conflicts.
CREATE FUNCTION conflicting_unscoped_clauses(a append_batch) RETURNS integer[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    floor CONSTANT bigint := staging_floor();
    present_epoch CONSTANT text := (SELECT max(e.number) FROM epochs e)::text;
BEGIN
    RETURN ARRAY(
        SELECT c.n
          FROM (SELECT u.n::integer AS n, u.type, u.tags::text[] AS tags, u.after, u.seen::bigint[] AS seen,
                       nullif(split_part(nullif(u.snapshot, 'position'), '/', 1), '') AS epoch,
                       nullif(split_part(nullif(u.snapshot, 'position'), '/', 2), '')::pg_snapshot AS snapshot
                  FROM unnest(a.clause_keys, a.clause_types, a.clause_tags, a.clause_after, a.clause_seen, a.clause_snapshots)
                       WITH ORDINALITY AS u (keys, type, tags, after, seen, snapshot, n)
                 WHERE cardinality(u.keys::bigint[]) = 0 OFFSET 0) AS c
         WHERE c.epoch <> present_epoch
            OR EXISTS (SELECT FROM staging s
                        WHERE s.id > floor AND s.id <> ALL (c.seen)
                          AND (c.type IS NULL OR s.type = c.type) AND s.tags @> c.tags)
            OR EXISTS (SELECT FROM events e
                        WHERE e.position > c.after AND coalesce(e.staged_id, 0) <> ALL (c.seen)
                          AND (c.snapshot IS NULL OR e.xid IS NULL)
                          AND (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags)
            OR EXISTS (SELECT FROM events e
                        WHERE e.xid >= pg_snapshot_xmin(c.snapshot)
                          AND NOT pg_visible_in_snapshot(e.xid, c.snapshot)
                          AND (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags));
END
$$;

-- The clauses that can't be checked at all, each with the status that says why.
--
-- A bare position as token claims that all up to it was seen. Where positions did not become visible in order, nobody can
-- have seen that; and nobody has seen what is not there yet.
CREATE FUNCTION refused_clauses(a append_batch, OUT clauses integer[], OUT statuses text[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    SELECT array_agg(r.n), array_agg(r.status) INTO clauses, statuses
      FROM (SELECT c.n::integer AS n, 'unscoped' AS status
              FROM unnest(a.clause_keys) WITH ORDINALITY AS c (keys, n)
             WHERE a.unscoped AND NOT a.unscoped_allowed AND cardinality(c.keys::bigint[]) = 0
            UNION ALL
            SELECT c.n, 'position'
              FROM unnest(a.clause_snapshots, a.clause_after) WITH ORDINALITY AS c (snapshot, after, n)
             WHERE c.snapshot = 'position' AND c.after > 0
               AND (c.after > (SELECT coalesce(max(e.position), 0) FROM events e)
                    OR EXISTS (SELECT FROM epochs e
                                WHERE e.strategy = 'boundary' AND e.after_position < c.after
                                  AND NOT EXISTS (SELECT FROM epochs later
                                                   WHERE later.number > e.number AND later.after_position < c.after)))) AS r;
END
$$;

-- Pairs of requests of a batch, of which the first writes an event that the second one's condition matches and that its
-- decision has not seen.
CREATE FUNCTION unseen_batch_mates(a append_batch, OUT writers integer[], OUT readers integer[])
LANGUAGE plpgsql VOLATILE
SET enable_nestloop = off SET jit = off
AS $$
BEGIN
    IF cardinality(a.command_ids) < 2 THEN
        RETURN;
    END IF;
    WITH event AS MATERIALIZED (
        SELECT e.request, e.type, e.tags::text[] AS tags, e.keys::bigint[] AS keys
          FROM unnest(a.event_requests, a.event_types, a.event_tags, a.event_keys) AS e (request, type, tags, keys)
    ), clause AS MATERIALIZED (
        SELECT c.n::integer AS n, c.type, c.tags::text[] AS tags, (c.keys::bigint[])[1] AS key
          FROM unnest(a.clause_types, a.clause_tags, a.clause_keys) WITH ORDINALITY AS c (type, tags, keys, n)
    ), keyed AS MATERIALIZED (
        SELECT e.request, e.type, e.tags, k.key FROM event e CROSS JOIN unnest(e.keys) AS k (key)
    ), matching AS (
        SELECT e.request, c.n
          FROM keyed e
          JOIN clause c ON c.key = e.key AND c.type = e.type AND e.tags @> c.tags
        UNION
        SELECT e.request, c.n
          FROM clause c
          JOIN event e ON (c.type IS NULL OR c.type = e.type) AND e.tags @> c.tags
         WHERE c.key IS NULL
    )
    SELECT array_agg(o.writer), array_agg(o.reader) INTO writers, readers
      FROM (SELECT DISTINCT m.request AS writer, r.n::integer AS reader
              FROM (SELECT u.n, c.n AS clause, u.builds_on::integer[] AS builds_on
                      FROM unnest(a.clauses, a.builds_on) WITH ORDINALITY AS u (clauses, builds_on, n)
                     CROSS JOIN unnest(u.clauses::integer[]) AS c (n)) AS r
              JOIN matching m ON m.n = r.clause
             WHERE m.request < r.n AND m.request <> ALL (r.builds_on)) AS o;
END
$$;

-- What becomes of each request, in their order. Called when the locks are held; what it asks are statements that begin
-- then. Appends with one id of their caller's run one after the other, because its key is among their locks (under
-- `global`, because all do): the later one finds the earlier one's outcome.
--
-- A request whose condition matches an event of an earlier one that is being appended must have seen it, and says so by
-- building on it; else it conflicts. One that builds on what is not appended falls with it.
CREATE FUNCTION judge(a append_batch) RETURNS text[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    statuses text[] := '{}';
    status text;
    taken text[];
    refused record;
    conflicting integer[];
    unseen record;
    own_clauses integer[];
    own_bases integer[];
BEGIN
    taken := ARRAY(SELECT o.id FROM unnest(a.command_ids, a.fingerprints) AS r (id, fingerprint)
                     JOIN outcomes o ON o.id = r.id WHERE r.fingerprint IS NOT NULL);
    refused := refused_clauses(a);
    conflicting := conflicting_clauses(a);
    unseen := unseen_batch_mates(a);
    IF taken = '{}' AND refused.clauses IS NULL AND conflicting = '{}' AND unseen.writers IS NULL
       AND array_remove(a.fingerprints, NULL) = '{}' THEN
        -- The rule. What follows goes through the requests one by one.
        RETURN array_fill('appended'::text, ARRAY[cardinality(a.command_ids)]);
    END IF;
    FOR request IN 1 .. cardinality(a.command_ids) LOOP
        own_clauses := a.clauses[request];
        own_bases := a.builds_on[request];
        status := 'appended';
        IF a.fingerprints[request] IS NOT NULL AND a.command_ids[request] = ANY (taken) THEN
            status := 'repeated';
        ELSIF own_clauses && refused.clauses THEN
            status := (SELECT r.status FROM unnest(refused.clauses, refused.statuses) AS r (n, status)
                        WHERE r.n = ANY (own_clauses) LIMIT 1);
        ELSIF EXISTS (SELECT FROM unnest(own_bases) AS b (n) WHERE statuses[b.n] <> 'appended') THEN
            status := 'undermined';
        ELSIF own_clauses && conflicting
           OR EXISTS (SELECT FROM unnest(unseen.writers, unseen.readers) AS o (writer, reader)
                       WHERE o.reader = request AND statuses[o.writer] = 'appended') THEN
            status := 'conflict';
        ELSIF a.fingerprints[request] IS NOT NULL THEN
            taken := taken || a.command_ids[request];
        END IF;
        statuses := statuses || status;
    END LOOP;
    RETURN statuses;
END
$$;

-- Writes the events of the requests that are appended to the log, at these positions: one for each such event.
CREATE FUNCTION write_events(a append_batch, statuses text[], positions bigint[], xid xid8) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
BEGIN
    WITH event AS MATERIALIZED (
        SELECT positions[(row_number() OVER (ORDER BY e.n))::integer] AS position, e.*
          FROM unnest(a.event_requests, a.event_types, a.event_tags, a.event_keys, a.event_data, a.event_metadata)
               WITH ORDINALITY AS e (request, type, tags, keys, data, metadata, n)
         WHERE statuses[e.request] = 'appended'
    ), written AS (
        INSERT INTO events (position, xid, recorded_at, version_id, type, tags,
                            command_id, correlation_id, causation_id, data, metadata, bytes)
        SELECT e.position, write_events.xid, coalesce(a.recorded_at, clock_timestamp()), a.version_ids[e.request], e.type, e.tags::text[],
               a.command_ids[e.request], a.correlation_ids[e.request], a.causation_ids[e.request],
               e.data::json, e.metadata::json, octet_length(e.data) + coalesce(octet_length(e.metadata), 0)
          FROM event e ORDER BY e.position
    )
    INSERT INTO event_keys (key, position)
    SELECT k.key, e.position FROM event e CROSS JOIN unnest(e.keys::bigint[]) AS k (key);

    -- Only a type that has never been there is inserted; two who bring it at once wait in one order.
    INSERT INTO event_types (type)
    SELECT DISTINCT e.type FROM unnest(a.event_requests, a.event_types) AS e (request, type)
     WHERE statuses[e.request] = 'appended' AND NOT EXISTS (SELECT FROM event_types t WHERE t.type = e.type)
     ORDER BY 1
    ON CONFLICT DO NOTHING;
END
$$;

-- How many events are to be written.
CREATE FUNCTION accepted_events(a append_batch, statuses text[]) RETURNS integer
LANGUAGE sql IMMUTABLE
AS $$
    SELECT count(*)::integer FROM unnest(a.event_requests) AS e (request) WHERE statuses[e.request] = 'appended'
$$;

-- Writes the events to the log, at the next positions, which it returns. The caller holds the store's lock, exclusive, and
-- keeps it to the commit: so nobody else continues from the same position, and a rollback leaves no gap.
CREATE FUNCTION write_next_events(a append_batch, statuses text[]) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    head bigint := (SELECT coalesce(max(e.position), 0) FROM events e);
    positions bigint[] := ARRAY(SELECT head + n FROM generate_series(1, accepted_events(a, statuses)) AS n);
BEGIN
    PERFORM write_events(a, statuses, positions, NULL);
    RETURN positions;
END
$$;
