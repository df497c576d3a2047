-- Reading what matches a query, for a decision.
--
-- A query comes as clauses, one for each type of each of its items: the type, all the tags of the item, and the keys of
-- the type with each of the tags. The first of the keys is the one that the clause is locked by. An item without a type
-- or without a tag is a clause without keys.

-- Which of a clause's keys to look under: one with the fewest events behind `after`, for an event that matches is found
-- under each of them. NULL for a clause without keys.
--
-- Each round counts up to eight times as far as the one before, so finding the key costs about as much as walking it,
-- however many events lie under the others. No statistics are asked: they know nothing of a single key.
--
-- (It is called by functions that pin their plans, and pins none itself: that would cost in each call.)
CREATE FUNCTION rarest_key(keys bigint[], after bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    reach integer := 64;
    lead bigint;
    found_under_lead integer;
BEGIN
    LOOP
        SELECT c.key, counted.n INTO lead, found_under_lead
          FROM unnest(keys) AS c (key)
         CROSS JOIN LATERAL (SELECT count(*) AS n
                               FROM (SELECT FROM event_keys k
                                      WHERE k.key = c.key AND k.position > rarest_key.after LIMIT reach) AS nearest) AS counted
         ORDER BY counted.n LIMIT 1;
        EXIT WHEN found_under_lead < reach;
        reach := reach * 8;
    END LOOP;
    RETURN lead;
END
$$;

-- The same, for any number of keys.
CREATE FUNCTION lead_key(keys bigint[], after bigint) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN cardinality(keys) < 2 THEN keys[1] ELSE rarest_key(keys, after) END
$$;

-- Whether an event of the log lies under all of a clause's keys: it then matches the clause, unless hashes have collided.
-- The index alone tells, so that events that carry only some of the tags are never fetched.
CREATE FUNCTION under_all_keys(keys bigint[], at bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT cardinality(keys) < 2
        OR NOT EXISTS (SELECT FROM unnest(keys) AS c (key)
                        WHERE NOT EXISTS (SELECT FROM event_keys k WHERE k.key = c.key AND k.position = at))
$$;

-- The events that match some clause and that the read `since` has not seen, flushed or staged, and the read token, in one
-- snapshot. A read from the beginning has seen nothing: `since` 0 and no staged ids.
--
-- The first row is the part of the token that belongs to no event, with the time. Then the events follow, in the order in which
-- a decision must see them: numbered ones by position, then staged ones (position NULL) by id. `clauses` says
-- which clauses an event matches, counted from 1. A staged event that some clause has seen before comes again, because
-- the next token needs it: `fresh` says for which clauses it is news.
--
-- The token says what this snapshot saw: for each clause a position up to which it saw everything (`clause_after`),
-- and the ids of the matching staged events. Where positions become visible in their own order, that position
-- is the highest one there is. Under `boundary` they do not; but those under one key do, because an append
-- takes its positions while it holds the key: there it is the highest one under the clause's first key. A clause
-- without a key has nothing of the kind, and needs the snapshot itself, together with the epoch in which transaction ids
-- mean anything.
--
-- Where an event comes from is told only `with_origin`: decisions do not depend on it.
--
-- At most `most_rows` events and about a megabyte are looked at for each clause. If that was not all, `clause_whole` is
-- false for it, and whoever needs it reads its events with read_page(), up to the token's position: they do not change
-- any more. The token is good all the same.
--
-- STABLE is what makes it sound: the queries inside all look at the snapshot of the calling statement. Were
-- it VOLATILE, each would take its own, and a flush between two of them would show an event twice or never.
--
-- The planner switches stand here because staging is empty whenever statistics are taken: a plan must not
-- rest on them.
CREATE FUNCTION decision_read(
    clause_keys text[], clause_types text[], clause_tags text[], clause_since bigint[], clause_seen text[],
    most_rows integer, with_origin boolean
)
RETURNS TABLE (
    clause_after bigint[], clause_whole boolean[], snapshot text, head bigint,
    "position" bigint, staged_id bigint, clauses integer[], fresh integer[],
    type text, event_tags text[], data json, metadata json, recorded_at timestamptz,
    command_id text, correlation_id text, causation_id text, handler text, digest bytea
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    most_bytes CONSTANT bigint := 1024 * 1024;
    by_key boolean := (SELECT s.strategy = 'boundary' FROM store s);
    present_head bigint := (SELECT coalesce(max(e.position), 0) FROM events e);
    floor CONSTANT bigint := staging_floor();
    after bigint[];
    leads bigint[];
    unscoped boolean;
    -- What was found in the log: positions, and for each the clauses that it matches.
    hit_clauses integer[];
    hit_positions bigint[];
    whole boolean[];
BEGIN
    SELECT array_agg(CASE WHEN by_key AND cardinality(c.keys) > 0
                          THEN coalesce((SELECT max(k.position) FROM event_keys k WHERE k.key = c.keys[1]), 0)
                          ELSE present_head END ORDER BY c.n),
           array_agg(lead_key(c.keys, c.since) ORDER BY c.n),
           coalesce(bool_or(cardinality(c.keys) = 0), false)
      INTO after, leads, unscoped
      FROM (SELECT c.keys::bigint[] AS keys, c.since, c.n
              FROM unnest(clause_keys, clause_since) WITH ORDINALITY AS c (keys, since, n)) AS c;

    -- Under the clause's leading key, or in the whole log if it has none: so many rows, of which only those with all
    -- its keys are fetched.
    WITH clause AS MATERIALIZED (
        SELECT c.n::integer AS n, c.keys::bigint[] AS keys, c.type, c.tags::text[] AS tags, c.since,
               c.seen::bigint[] AS seen, leads[c.n] AS lead
          FROM unnest(clause_keys, clause_types, clause_tags, clause_since, clause_seen)
               WITH ORDINALITY AS c (keys, type, tags, since, seen, n)
    ), looked_at AS MATERIALIZED (
        SELECT c.n, l.position
          FROM clause c
         CROSS JOIN LATERAL (
               (SELECT k.position FROM event_keys k
                 WHERE k.key = c.lead AND k.position > c.since
                 ORDER BY k.position LIMIT most_rows)
               UNION ALL
               (SELECT e.position FROM events e
                 WHERE c.lead IS NULL AND e.position > c.since
                 ORDER BY e.position LIMIT most_rows)) AS l
    ), matching AS (
        SELECT c.n, l.position, sum(e.bytes) OVER (PARTITION BY c.n ORDER BY l.position) - e.bytes AS bytes_before
          FROM looked_at l
          JOIN clause c ON c.n = l.n AND under_all_keys(c.keys, l.position)
          JOIN events e ON e.position = l.position
         WHERE (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags
           AND coalesce(e.staged_id, 0) <> ALL (c.seen)
    )
    SELECT array_agg(m.n) FILTER (WHERE m.bytes_before < most_bytes),
           array_agg(m.position) FILTER (WHERE m.bytes_before < most_bytes),
           ARRAY(SELECT (SELECT count(*) FROM looked_at l WHERE l.n = c.n) < most_rows
                        AND NOT EXISTS (SELECT FROM matching m WHERE m.n = c.n AND m.bytes_before >= most_bytes)
                   FROM clause c ORDER BY c.n)
      INTO hit_clauses, hit_positions, whole
      FROM matching m;

    RETURN QUERY
    SELECT after, whole,
           CASE WHEN by_key AND unscoped
                THEN (SELECT max(e.number) FROM epochs e)::text || '/' || pg_current_snapshot()::text END,
           present_head,
           NULL::bigint, NULL::bigint, NULL::integer[], NULL::integer[], NULL::text, NULL::text[], NULL::json,
           NULL::json, clock_timestamp(), NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea;

    RETURN QUERY
    SELECT NULL::bigint[], NULL::boolean[], NULL::text, NULL::bigint,
           e.position, e.staged_id, h.clauses, h.clauses, e.type, e.tags, e.data, e.metadata, e.recorded_at,
           CASE WHEN with_origin THEN e.command_id END, CASE WHEN with_origin THEN coalesce(e.correlation_id, e.command_id) END, e.causation_id,
           v.handler, v.digest
      FROM (SELECT h.position, array_agg(h.n) AS clauses
              FROM unnest(hit_clauses, hit_positions) AS h (n, position) GROUP BY h.position) AS h
      JOIN events e ON e.position = h.position
      LEFT JOIN handler_versions v ON with_origin AND v.id = e.version_id
     ORDER BY e.position;

    RETURN QUERY
    WITH clause AS MATERIALIZED (
        SELECT c.n::integer AS n, c.type, c.tags::text[] AS tags, c.seen::bigint[] AS seen, leads[c.n] AS lead
          FROM unnest(clause_types, clause_tags, clause_seen) WITH ORDINALITY AS c (type, tags, seen, n)
    ), hit AS (
        SELECT c.n, s.id, s.id <> ALL (c.seen) AS fresh
          FROM clause c
          JOIN staged_keys k ON k.key = c.lead AND k.staged_id > floor
          JOIN staging s ON s.id = k.staged_id
         WHERE s.type = c.type AND s.tags @> c.tags
        UNION ALL
        SELECT c.n, s.id, s.id <> ALL (c.seen)
          FROM clause c
          JOIN staging s ON s.id > floor AND (c.type IS NULL OR s.type = c.type) AND s.tags @> c.tags
         WHERE c.lead IS NULL
    )
    SELECT NULL::bigint[], NULL::boolean[], NULL::text, NULL::bigint,
           NULL::bigint, s.id, h.clauses, h.fresh, s.type, s.tags,
           CASE WHEN h.fresh IS NOT NULL THEN s.data END, s.metadata, s.recorded_at,
           CASE WHEN with_origin THEN s.command_id END, CASE WHEN with_origin THEN coalesce(s.correlation_id, s.command_id) END, s.causation_id,
           v.handler, v.digest
      FROM (SELECT h.id, array_agg(h.n) AS clauses, array_agg(h.n) FILTER (WHERE h.fresh) AS fresh
              FROM hit h GROUP BY h.id) AS h
      JOIN staging s ON s.id = h.id
      LEFT JOIN handler_versions v ON with_origin AND v.id = s.version_id
     ORDER BY s.id;
END
$$;

-- A page of what read_page() was asked for: numbered events that match some clause, behind `after` and before `before`
-- (positions), up or down the log. `clause_until` and `snapshot` come from a token: nothing is shown that its read did
-- not see. What it did see is in the log for good, so the pages together are as good as one snapshot, and nobody holds
-- one open meanwhile.
--
-- The first row says how far the page has looked; NULL, if that was all. It looks at `most_rows` rows for each
-- clause and returns about four megabytes, at the most, but one event at the least.
CREATE FUNCTION read_page(
    clause_keys text[], clause_types text[], clause_tags text[], clause_until bigint[], snapshot text,
    after bigint, before bigint, backwards boolean, most_rows integer
)
RETURNS TABLE (
    looked_to bigint, "position" bigint, type text, event_tags text[], data json, metadata json, recorded_at timestamptz,
    command_id text, correlation_id text, causation_id text, handler text, digest bytea
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    most_bytes CONSTANT bigint := 4 * 1024 * 1024;
    seen_by CONSTANT pg_snapshot := nullif(split_part(snapshot, '/', 2), '')::pg_snapshot;
    -- Down the log, positions are compared as if they were negative.
    direction CONSTANT bigint := CASE WHEN backwards THEN -1 ELSE 1 END;
    reach bigint;
    hits bigint[];
    fitting bigint[];
BEGIN
    WITH clause AS MATERIALIZED (
        SELECT c.n, c.keys::bigint[] AS keys, c.type, c.tags::text[] AS tags,
               least(c.until, read_page.before - 1) AS until, lead_key(c.keys::bigint[], read_page.after) AS lead
          FROM unnest(clause_keys, clause_types, clause_tags, clause_until)
               WITH ORDINALITY AS c (keys, type, tags, until, n)
    ), looked_at AS MATERIALIZED (
        SELECT c.n, l.position
          FROM clause c
         CROSS JOIN LATERAL (
               (SELECT k.position FROM event_keys k
                 WHERE NOT backwards AND k.key = c.lead AND k.position > read_page.after AND k.position <= c.until
                 ORDER BY k.position LIMIT most_rows)
               UNION ALL
               (SELECT k.position FROM event_keys k
                 WHERE backwards AND k.key = c.lead AND k.position > read_page.after AND k.position <= c.until
                 ORDER BY k.position DESC LIMIT most_rows)
               UNION ALL
               (SELECT e.position FROM events e
                 WHERE NOT backwards AND c.lead IS NULL AND e.position > read_page.after AND e.position <= c.until
                 ORDER BY e.position LIMIT most_rows)
               UNION ALL
               (SELECT e.position FROM events e
                 WHERE backwards AND c.lead IS NULL AND e.position > read_page.after AND e.position <= c.until
                 ORDER BY e.position DESC LIMIT most_rows)) AS l
    ), looked_through AS (
        -- Beyond the nearest end of a clause that may have more, the page is not complete.
        SELECT min(e.reach) AS reach
          FROM (SELECT max(l.position * direction) AS reach FROM looked_at l GROUP BY l.n HAVING count(*) >= most_rows) AS e
    )
    SELECT (SELECT t.reach FROM looked_through t),
           array_agg(DISTINCT m.place)
      INTO reach, hits
      FROM (SELECT l.position * direction AS place
              FROM looked_at l
              JOIN clause c ON c.n = l.n AND under_all_keys(c.keys, l.position)
              JOIN events e ON e.position = l.position
             WHERE (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags
               AND (c.lead IS NOT NULL OR seen_by IS NULL OR e.xid IS NULL OR pg_visible_in_snapshot(e.xid, seen_by))) AS m
     WHERE m.place <= (SELECT coalesce(t.reach, m.place) FROM looked_through t);

    fitting := ARRAY(SELECT w.place
                       FROM (SELECT h.place, sum(e.bytes) OVER (ORDER BY h.place) - e.bytes AS bytes_before
                               FROM unnest(hits) AS h (place)
                               JOIN events e ON e.position = h.place * direction) AS w
                      WHERE w.bytes_before < most_bytes ORDER BY w.place);
    IF cardinality(fitting) < coalesce(cardinality(hits), 0) THEN
        reach := fitting[cardinality(fitting)];
    END IF;

    RETURN QUERY SELECT reach * direction, NULL::bigint, NULL::text, NULL::text[], NULL::json, NULL::json, NULL::timestamptz,
                        NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea;
    RETURN QUERY
    SELECT NULL::bigint, e.position, e.type, e.tags, e.data, e.metadata, e.recorded_at,
           e.command_id, coalesce(e.correlation_id, e.command_id), e.causation_id, v.handler, v.digest
      FROM unnest(fitting) AS f (place)
      JOIN events e ON e.position = f.place * direction
      LEFT JOIN handler_versions v ON v.id = e.version_id
     ORDER BY f.place;
END
$$;
