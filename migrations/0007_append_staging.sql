-- `staging`: a lock for each key, and no position at all. The flusher gives it later: see flush().
--
-- The check is as safe as under `boundary`; it looks at staging and events together. Ids of staged rows ascend
-- within a key, because they are handed out while the key is held, and the flusher takes the oldest first: positions
-- keep the order of every key. They are given in one place, by one transaction after the other, and so
-- become visible in their own order and without a gap, although the appends commit in parallel.
CREATE FUNCTION append_staging(a append_request) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    status text;
BEGIN
    PERFORM lock_keys(a);
    IF a.unscoped_allowed THEN
        PERFORM lock_store(exclusive => a.unscoped);
    END IF;
    status := objection(a);
    IF status IS NOT NULL THEN
        RETURN status;
    END IF;

    WITH staged AS (
        INSERT INTO staging (type, tags, keys, data, bytes, command_id, correlation_id, causation_id, version_id)
        SELECT e.type, e.tags::text[], e.keys::bigint[], e.data::json, octet_length(e.data),
               a.command_id, a.correlation_id, a.causation_id, a.version_id
          FROM unnest(a.event_types, a.event_tags, a.event_keys, a.event_data)
               WITH ORDINALITY AS e (type, tags, keys, data, ordinal)
         ORDER BY e.ordinal
        RETURNING id, keys
    )
    INSERT INTO staged_keys (key, staged_id) SELECT k.key, s.id FROM staged s CROSS JOIN unnest(s.keys) AS k (key);
    RETURN 'appended';
END
$$;

-- The way in. `ours` is the strategy that the caller takes the store to have.
CREATE FUNCTION append(
    ours text, lock_keys bigint[], lock_exclusive boolean[],
    clause_keys bigint[], clause_types text[], clause_tags text[],
    clause_after bigint[], seen bigint[], snapshot text,
    event_types text[], event_tags text[], event_keys text[], event_data text[],
    command_id text, correlation_id text, causation_id text, version_id integer,
    fingerprint bytea, answer text
) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    present store;
    a append_request;
    status text;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN 'isolation';
    END IF;
    -- What is acknowledged is on disk, whatever the database or the role has been set to.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- From here to the end of the transaction the settings can't change: see the table.
    SELECT s.* INTO STRICT present FROM store s;
    IF present.strategy <> ours THEN
        RETURN 'strategy';
    END IF;
    a := ROW(lock_keys, lock_exclusive, clause_keys, clause_types, clause_tags,
             clause_after, seen, snapshot::pg_snapshot, event_types, event_tags, event_keys, event_data,
             command_id, correlation_id, causation_id, version_id, fingerprint,
             array_position(clause_keys, NULL) IS NOT NULL, present.unscoped_conditions);
    IF a.unscoped AND NOT a.unscoped_allowed THEN
        RETURN 'unscoped';
    END IF;
    status := CASE present.strategy
        WHEN 'global' THEN append_global(a)
        WHEN 'boundary' THEN append_boundary(a)
        WHEN 'hybrid' THEN append_hybrid(a)
        WHEN 'staging' THEN append_staging(a)
    END;
    IF status = 'appended' AND fingerprint IS NOT NULL THEN
        INSERT INTO outcomes (id, fingerprint, answer) VALUES (command_id, fingerprint, answer::json);
    END IF;
    RETURN status;
END
$$;
