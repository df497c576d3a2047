-- The events that match a boundary, flushed or staged, and the read token, in one snapshot.
--
-- The boundary comes as clauses, one for each type of each item: the key of (type, first tag), the type, and
-- all the tags of the item as an array literal.
--
-- The first row is the token's part that belongs to no event: `head`, the highest position that this snapshot
-- holds. Then the matching events follow, in the order in which a decision must see them: flushed ones by
-- position, then staged ones (position NULL) by id.
--
-- STABLE is what makes it sound: the queries inside all look at the snapshot of the calling statement. Were
-- it VOLATILE, each would take its own, and a flush between two of them would show an event twice or never.
--
-- The planner switches stand here because staging is empty whenever statistics are taken: a plan must not
-- rest on them.
CREATE FUNCTION decision_read(clause_keys bigint[], clause_types text[], clause_tags text[])
RETURNS TABLE (
    head bigint, "position" bigint, staged_id bigint, type text, tags text[], data json, recorded_at timestamptz
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT coalesce(max(e.position), 0),
           NULL::bigint, NULL::bigint, NULL::text, NULL::text[], NULL::json, NULL::timestamptz
      FROM events e;

    RETURN QUERY
    SELECT NULL::bigint, e.position, e.staged_id, e.type, e.tags, e.data, e.recorded_at
      FROM (SELECT DISTINCT k.position
              FROM unnest(clause_keys) AS c (key)
              JOIN event_keys k ON k.key = c.key) AS candidate
      JOIN events e ON e.position = candidate.position
     WHERE EXISTS (SELECT FROM unnest(clause_types, clause_tags) AS c (type, tags)
                    WHERE e.type = c.type AND e.tags @> c.tags::text[])
     ORDER BY e.position;

    RETURN QUERY
    SELECT NULL::bigint, NULL::bigint, s.id, s.type, s.tags, s.data, s.recorded_at
      FROM (SELECT DISTINCT k.staged_id
              FROM unnest(clause_keys) AS c (key)
              JOIN staged_keys k ON k.key = c.key) AS candidate
      JOIN staging s ON s.id = candidate.staged_id
     WHERE EXISTS (SELECT FROM unnest(clause_types, clause_tags) AS c (type, tags)
                    WHERE s.type = c.type AND s.tags @> c.tags::text[])
     ORDER BY s.id;
END
$$;
