-- One page of the log: at most `page` events behind a place, none past `until`, with any of the types (all, if none
-- is named) and all of the tags.
--
-- The first row says only how far the page has looked: everything up to there that matches is in the page, unless
-- the page is full. A page looks at a bounded number of rows, so a filter that matches little costs many small
-- statements rather than one without end.

-- By position, for epochs in which positions become visible in their own order. With tags, `keys` holds, for each type
-- that may come, its keys with each of the tags; the caller knows the types as they were when the log reached `until`.
CREATE FUNCTION log_page(after bigint, until bigint, types text[], tags text[], keys text[], page integer)
RETURNS TABLE (
    looked_to bigint, looked_to_xid bigint, "position" bigint, xid bigint,
    type text, event_tags text[], data json, metadata json, recorded_at timestamptz,
    command_id text, correlation_id text, causation_id text, handler text, digest bytea
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    span CONSTANT bigint := 10000;
    most_bytes CONSTANT bigint := 4 * 1024 * 1024;
    candidates bigint[];
    fitting bigint[];
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
                              FROM (SELECT lead_key(u.keys::bigint[], after) AS lead
                                      FROM unnest(log_page.keys) AS u (keys) OFFSET 0) AS c
                             CROSS JOIN LATERAL (SELECT ek.position FROM event_keys ek
                                                  WHERE ek.key = c.lead AND ek.position > after
                                                    AND ek.position <= until
                                                  ORDER BY ek.position LIMIT page) AS k
                             ORDER BY 1 LIMIT page);
        reach := CASE WHEN cardinality(candidates) < page THEN until ELSE candidates[page] END;
    END IF;
    -- So many events as fit, and one at least.
    fitting := ARRAY(SELECT w.position
                       FROM (SELECT e.position, sum(e.bytes) OVER (ORDER BY e.position) - e.bytes AS bytes_before
                               FROM events e WHERE e.position = ANY (candidates)) AS w
                      WHERE w.bytes_before < most_bytes ORDER BY w.position);
    IF cardinality(fitting) < cardinality(candidates) THEN
        candidates := fitting;
        reach := fitting[cardinality(fitting)];
    END IF;

    RETURN QUERY SELECT reach, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text, NULL::text[], NULL::json,
                        NULL::json, NULL::timestamptz, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea;
    RETURN QUERY
    SELECT NULL::bigint, NULL::bigint, e.position, NULL::bigint, e.type, e.tags, e.data, e.metadata, e.recorded_at,
           e.command_id, coalesce(e.correlation_id, e.command_id), e.causation_id, v.handler, v.digest
      FROM events e
      LEFT JOIN handler_versions v ON v.id = e.version_id
     WHERE e.position = ANY (candidates)
       AND (cardinality(types) = 0 OR e.type = ANY (types)) AND e.tags @> log_page.tags
     ORDER BY e.position;
END
$$;

-- By (xid, position), for epochs of the strategy `boundary`.
--
-- Where the epoch ends is looked up in the snapshot of the page itself: a caller may have asked a while ago, and by now the
-- epoch may have ended and another of its kind begun, whose events are not in this one's order. In the present epoch nothing is shown of transactions that are not older than the oldest one that still
-- runs: one of those may yet commit events that come before them. An older one has ended, so what it wrote
-- is there or never will be. A transaction that idles anywhere in the cluster after it has written holds
-- everybody's page back, and is therefore watched: see horizon().
CREATE FUNCTION log_page_by_xid(
    after_xid bigint, after bigint, epoch integer, types text[], tags text[], page integer
)
RETURNS TABLE (
    looked_to bigint, looked_to_xid bigint, "position" bigint, xid bigint,
    type text, event_tags text[], data json, metadata json, recorded_at timestamptz,
    command_id text, correlation_id text, causation_id text, handler text, digest bytea
)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    span CONSTANT integer := 10000;
    unfiltered boolean := cardinality(types) = 0 AND cardinality(tags) = 0;
    most_bytes CONSTANT bigint := 4 * 1024 * 1024;
    horizon xid8 := pg_snapshot_xmin(pg_current_snapshot());
    epoch_after bigint := (SELECT e.after_position FROM epochs e WHERE e.number = epoch);
    until bigint := (SELECT e.after_position FROM epochs e WHERE e.number = epoch + 1);
    candidates bigint[];
BEGIN
    candidates := ARRAY(SELECT e.position FROM events e
                         WHERE e.xid IS NOT NULL
                           AND (e.xid, e.position) > (log_page_by_xid.after_xid::text::xid8, log_page_by_xid.after)
                           AND e.position > epoch_after
                           AND CASE WHEN until IS NULL THEN e.xid < horizon ELSE e.position <= until END
                         ORDER BY e.xid, e.position
                         LIMIT CASE WHEN unfiltered THEN page ELSE span END);
    -- So many events as fit, and one at least.
    candidates := ARRAY(SELECT w.position
                          FROM (SELECT e.position, e.xid,
                                       sum(e.bytes) OVER (ORDER BY e.xid, e.position) - e.bytes AS bytes_before
                                  FROM events e WHERE e.position = ANY (candidates)) AS w
                         WHERE w.bytes_before < most_bytes ORDER BY w.xid, w.position);

    RETURN QUERY
    SELECT e.position, e.xid::text::bigint, NULL::bigint, NULL::bigint, NULL::text, NULL::text[], NULL::json,
           NULL::json, NULL::timestamptz, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bytea
      FROM events e WHERE e.position = candidates[cardinality(candidates)];
    RETURN QUERY
    SELECT NULL::bigint, NULL::bigint, e.position, e.xid::text::bigint, e.type, e.tags, e.data, e.metadata, e.recorded_at,
           e.command_id, coalesce(e.correlation_id, e.command_id), e.causation_id, v.handler, v.digest
      FROM events e
      LEFT JOIN handler_versions v ON v.id = e.version_id
     WHERE e.position = ANY (candidates)
       AND (cardinality(types) = 0 OR e.type = ANY (types)) AND e.tags @> log_page_by_xid.tags
     ORDER BY e.xid, e.position
     LIMIT page;
END
$$;
