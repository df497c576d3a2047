-- One page of the log: at most `page` events after the position `after`, none past `until`, with any of the
-- types (all, if none is named) and all of the tags. With tags, `keys` holds the keys of the first tag with each
-- type that may come; the caller knows the types as they were when the log reached `until`.
--
-- The first row says only how far the page has looked (`looked_to`): everything up to there that matches is in
-- the page, unless the page is full. A page looks at a bounded number of rows, so a filter that matches
-- little costs many small statements rather than one without end.
CREATE FUNCTION log_page(after bigint, until bigint, types text[], tags text[], keys bigint[], page integer)
RETURNS TABLE (
    looked_to bigint, "position" bigint, type text, event_tags text[], data json, recorded_at timestamptz,
    command_id text, correlation_id text, causation_id text, handler text, digest bytea
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    span CONSTANT bigint := 10000;
    candidates bigint[];
    reach bigint;
BEGIN
    IF cardinality(tags) = 0 THEN
        reach := least(until, after + span);
        candidates := ARRAY(SELECT e.position FROM events e
                             WHERE e.position > after AND e.position <= reach
                               AND (cardinality(types) = 0 OR e.type = ANY (types))
                             ORDER BY e.position LIMIT page);
    ELSE
        candidates := ARRAY(SELECT DISTINCT k.position
                              FROM unnest(keys) AS c (key)
                             CROSS JOIN LATERAL (SELECT ek.position FROM event_keys ek
                                                  WHERE ek.key = c.key AND ek.position > after
                                                    AND ek.position <= until
                                                  ORDER BY ek.position LIMIT page) AS k
                             ORDER BY 1 LIMIT page);
        reach := CASE WHEN cardinality(candidates) < page THEN until ELSE candidates[page] END;
    END IF;

    RETURN QUERY SELECT reach, NULL::bigint, NULL::text, NULL::text[], NULL::json, NULL::timestamptz,
                        NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea;
    RETURN QUERY
    SELECT NULL::bigint, e.position, e.type, e.tags, e.data, e.recorded_at,
           e.command_id, coalesce(e.correlation_id, e.command_id), e.causation_id, v.handler, v.digest
      FROM events e
      LEFT JOIN handler_versions v ON v.id = e.version_id
     WHERE e.position = ANY (candidates)
       AND (cardinality(types) = 0 OR e.type = ANY (types)) AND e.tags @> log_page.tags
     ORDER BY e.position;
END
$$;
