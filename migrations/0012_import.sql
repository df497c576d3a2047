-- Adds events to the log as they were in another one, with the time and the origin that they had there. They follow what is
-- in the log, in their order, but only if that ends at `expected_head`: an import that was cut off, or is made twice,
-- shows there. Returns the new head, or NULL, and then nothing was written, if the log ends elsewhere.
--
-- No append runs meanwhile. That is as if the import held every lock that there is: whoever reads before it and appends
-- after it finds its events in the check.
CREATE FUNCTION import_events(
    expected_head bigint,
    event_types text[], event_tags text[], event_keys text[], event_data text[], event_metadata text[],
    recorded_at timestamptz[], command_ids text[], correlation_ids text[], causation_ids text[],
    handlers text[], digests bytea[]
) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    head bigint;
    by_xid boolean;
BEGIN
    LOCK TABLE store IN ACCESS EXCLUSIVE MODE;
    IF has_moved() THEN
        PERFORM adopt_cluster();
    END IF;
    PERFORM flush_all();
    SELECT coalesce(max(e.position), 0) INTO head FROM events e;
    IF head <> expected_head THEN
        RETURN NULL;
    END IF;
    by_xid := (SELECT s.strategy = 'boundary' FROM store s);

    INSERT INTO handler_versions (handler, digest, commands, event_types)
    SELECT DISTINCT ON (u.digest) u.handler, u.digest, '{}'::text[], '{}'::text[]
      FROM unnest(handlers, digests) AS u (handler, digest)
     WHERE u.digest IS NOT NULL AND u.handler IS NOT NULL
     ORDER BY u.digest
    ON CONFLICT DO NOTHING;

    INSERT INTO events (position, xid, recorded_at, version_id, type, tags,
                        command_id, correlation_id, causation_id, data, metadata, bytes)
    SELECT head + u.n, CASE WHEN by_xid THEN pg_current_xact_id() END, u.recorded_at, v.id, u.type, u.tags::text[],
           u.command_id, nullif(u.correlation_id, u.command_id), u.causation_id, u.data::json, u.metadata::json,
           octet_length(u.data) + coalesce(octet_length(u.metadata), 0)
      FROM unnest(event_types, event_tags, event_data, event_metadata, import_events.recorded_at,
                  command_ids, correlation_ids, causation_ids, digests)
           WITH ORDINALITY AS u (type, tags, data, metadata, recorded_at, command_id, correlation_id, causation_id, digest, n)
      LEFT JOIN handler_versions v ON v.digest = u.digest;

    INSERT INTO event_keys (key, position)
    SELECT k.key, head + u.n
      FROM unnest(event_keys) WITH ORDINALITY AS u (keys, n) CROSS JOIN unnest(u.keys::bigint[]) AS k (key)
     ORDER BY 1, 2;

    INSERT INTO event_types (type)
    SELECT DISTINCT u.type FROM unnest(event_types) AS u (type)
     WHERE NOT EXISTS (SELECT FROM event_types t WHERE t.type = u.type);

    head := head + cardinality(event_types);
    IF by_xid THEN
        PERFORM setval('boundary_positions', greatest(head, 1), head > 0);
    END IF;
    PERFORM pg_notify('weir_' || current_schema(), head::text);
    RETURN head;
END
$$;
