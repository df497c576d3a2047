-- The events that match a query, flushed or staged, and the read token, in one snapshot.
--
-- The query comes as clauses, one for each type of each item: the key of (type, first tag), the type, and all the
-- tags of the item as an array literal. An item without a type or without a tag is a clause without a key.
--
-- The first row is the part of the token that belongs to no event. Then the matching events follow, in the order in
-- which a decision must see them: numbered ones by position, then staged ones (position NULL) by id.
--
-- The token says what this snapshot saw: for each clause a position up to which it saw everything (`clause_after`),
-- and the ids of the matching staged events. Where positions become visible in their own order, that position
-- is the highest one there is. Under `boundary` they do not; but those under one key do, because an append
-- takes its positions while it holds the key: there it is the highest one under the clause's key. A clause
-- without a key has nothing of the kind, and needs the snapshot itself.
--
-- STABLE is what makes it sound: the queries inside all look at the snapshot of the calling statement. Were
-- it VOLATILE, each would take its own, and a flush between two of them would show an event twice or never.
--
-- The planner switches stand here because staging is empty whenever statistics are taken: a plan must not
-- rest on them.
CREATE FUNCTION decision_read(clause_keys bigint[], clause_types text[], clause_tags text[])
RETURNS TABLE (
    clause_after bigint[], snapshot text,
    "position" bigint, staged_id bigint, type text, tags text[], data json, recorded_at timestamptz
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    by_key boolean := (SELECT s.strategy = 'boundary' FROM store s);
    scoped boolean := array_position(clause_keys, NULL) IS NULL;
    head bigint := (SELECT coalesce(max(e.position), 0) FROM events e);
BEGIN
    RETURN QUERY
    SELECT ARRAY(SELECT CASE WHEN by_key AND c.key IS NOT NULL
                             THEN coalesce((SELECT max(k.position) FROM event_keys k WHERE k.key = c.key), 0)
                             ELSE head END
                   FROM unnest(clause_keys) WITH ORDINALITY AS c (key, ordinal) ORDER BY c.ordinal),
           CASE WHEN by_key AND NOT scoped THEN pg_current_snapshot()::text END,
           NULL::bigint, NULL::bigint, NULL::text, NULL::text[], NULL::json, NULL::timestamptz;

    IF scoped THEN
        RETURN QUERY
        SELECT NULL::bigint[], NULL::text, e.position, e.staged_id, e.type, e.tags, e.data, e.recorded_at
          FROM (SELECT DISTINCT k.position
                  FROM unnest(clause_keys) AS c (key)
                  JOIN event_keys k ON k.key = c.key) AS candidate
          JOIN events e ON e.position = candidate.position
         WHERE EXISTS (SELECT FROM unnest(clause_types, clause_tags) AS c (type, tags)
                        WHERE e.type = c.type AND e.tags @> c.tags::text[])
         ORDER BY e.position;

        RETURN QUERY
        SELECT NULL::bigint[], NULL::text, NULL::bigint, s.id, s.type, s.tags, s.data, s.recorded_at
          FROM (SELECT DISTINCT k.staged_id
                  FROM unnest(clause_keys) AS c (key)
                  JOIN staged_keys k ON k.key = c.key) AS candidate
          JOIN staging s ON s.id = candidate.staged_id
         WHERE EXISTS (SELECT FROM unnest(clause_types, clause_tags) AS c (type, tags)
                        WHERE s.type = c.type AND s.tags @> c.tags::text[])
         ORDER BY s.id;
    ELSE
        -- No key finds these: the whole log is looked at.
        RETURN QUERY
        SELECT NULL::bigint[], NULL::text, e.position, e.staged_id, e.type, e.tags, e.data, e.recorded_at
          FROM events e
         WHERE EXISTS (SELECT FROM unnest(clause_types, clause_tags) AS c (type, tags)
                        WHERE (c.type IS NULL OR e.type = c.type) AND e.tags @> c.tags::text[])
         ORDER BY e.position;

        RETURN QUERY
        SELECT NULL::bigint[], NULL::text, NULL::bigint, s.id, s.type, s.tags, s.data, s.recorded_at
          FROM staging s
         WHERE EXISTS (SELECT FROM unnest(clause_types, clause_tags) AS c (type, tags)
                        WHERE (c.type IS NULL OR s.type = c.type) AND s.tags @> c.tags::text[])
         ORDER BY s.id;
    END IF;
END
$$;
