-- `staging`: a lock for each key, and no position at all. The flusher gives it later: see flush().
--
-- The check is as safe as under `boundary`; it looks at staging and events together. Ids of staged rows ascend
-- within a key, because they are handed out while the key is held, and the flusher takes the oldest first: positions
-- keep the order of every key. They are given in one place, by one transaction after the other, and so
-- become visible in their own order and without a gap, although the appends commit in parallel.
CREATE FUNCTION append_staging(a append_batch) RETURNS append_result
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    statuses text[];
    ids bigint[];
BEGIN
    PERFORM lock_keys(a);
    IF a.unscoped_allowed THEN
        PERFORM lock_store(exclusive => a.unscoped);
    END IF;
    statuses := judge(a);

    WITH staged AS (
        INSERT INTO staging (recorded_at, type, tags, keys, data, metadata, bytes,
                             command_id, correlation_id, causation_id, version_id)
        SELECT coalesce(a.recorded_at, clock_timestamp()), e.type, e.tags::text[], e.keys::bigint[], e.data::json, e.metadata::json,
               octet_length(e.data) + coalesce(octet_length(e.metadata), 0),
               a.command_ids[e.request], a.correlation_ids[e.request], a.causation_ids[e.request], a.version_ids[e.request]
          FROM unnest(a.event_requests, a.event_types, a.event_tags, a.event_keys, a.event_data, a.event_metadata)
               WITH ORDINALITY AS e (request, type, tags, keys, data, metadata, n)
         WHERE statuses[e.request] = 'appended'
         ORDER BY e.n
        RETURNING id, keys
    ), keyed AS (
        INSERT INTO staged_keys (key, staged_id) SELECT k.key, s.id FROM staged s CROSS JOIN unnest(s.keys) AS k (key)
    )
    SELECT array_agg(s.id ORDER BY s.id) INTO ids FROM staged s;
    RETURN ROW(statuses, ids);
END
$$;


-- The way in. `ours` is the strategy that the caller takes the store to have.
CREATE FUNCTION append(
    ours text, lock_keys bigint[], lock_exclusive boolean[],
    clause_keys text[], clause_types text[], clause_tags text[],
    clause_after bigint[], clause_seen text[], clause_snapshots text[],
    clauses text[], builds_on text[],
    command_ids text[], correlation_ids text[], causation_ids text[], version_ids integer[],
    fingerprints bytea[], answers text[],
    event_requests integer[], event_types text[], event_tags text[], event_keys text[],
    event_data text[], event_metadata text[], recorded_at timestamptz
) RETURNS append_result
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    present store;
    a append_batch;
    result append_result;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RETURN ROW(array_fill('isolation'::text, ARRAY[cardinality(command_ids)]), NULL::bigint[]);
    END IF;
    -- What is acknowledged is on disk, whatever the database or the role has been set to.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    -- From here to the end of the transaction the settings can't change: see the table.
    SELECT s.* INTO STRICT present FROM store s;
    IF present.strategy <> ours THEN
        RETURN ROW(array_fill('strategy'::text, ARRAY[cardinality(command_ids)]), NULL::bigint[]);
    END IF;
    IF present.strategy = 'boundary' AND has_moved() THEN
        RETURN ROW(array_fill('moved'::text, ARRAY[cardinality(command_ids)]), NULL::bigint[]);
    END IF;
    a := ROW(lock_keys, lock_exclusive, clause_keys, clause_types, clause_tags,
             clause_after, clause_seen, clause_snapshots, clauses, builds_on,
             command_ids, correlation_ids, causation_ids, version_ids, fingerprints,
             event_requests, event_types, event_tags, event_keys, event_data, event_metadata, recorded_at,
             '{}' = ANY (clause_keys), present.unscoped_conditions);
    result := CASE present.strategy
        WHEN 'global' THEN append_global(a)
        WHEN 'boundary' THEN append_boundary(a)
        WHEN 'hybrid' THEN append_hybrid(a)
        WHEN 'staging' THEN append_staging(a)
    END;
    INSERT INTO outcomes (id, fingerprint, answer)
    SELECT r.id, r.fingerprint, r.answer::json
      FROM unnest(result.statuses, command_ids, fingerprints, answers) AS r (status, id, fingerprint, answer)
     WHERE r.status = 'appended' AND r.fingerprint IS NOT NULL;
    RETURN result;
END
$$;
