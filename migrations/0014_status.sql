-- How far behind the flusher is: how many rows are staged, and since when the oldest of them has been.
--
-- No count of all rows, which would take the longer the deeper staging is. Ids ascend, and the flusher takes the oldest
-- first: the last id that was handed out, less the first one that is still there, is the most that there can
-- be. Ids are lost with what is rolled back, so up to `counted` rows are counted, and `exact` says that they were.
--
-- Flushed rows stay in the index until a vacuum, and beside a long-running snapshot for as long as that. The floor passes
-- over them, but can't be raised while a dump or the like holds the lock of `store`. So this begins near the id of the
-- last event that was numbered, if that is higher: only a transaction that took its id so much earlier and has ended
-- but now stages an older row, and the next flush takes that first.
CREATE FUNCTION staging_depth(counted integer, OUT depth bigint, OUT exact boolean, OUT oldest timestamptz)
LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    late CONSTANT bigint := 10000;
    numbered bigint;
    floor bigint;
    first bigint;
BEGIN
    -- No id, if the last event was not staged: then nothing has been flushed since the strategy was another.
    numbered := coalesce((SELECT e.staged_id FROM events e ORDER BY e.position DESC LIMIT 1), 0);
    floor := greatest(numbered - late, staging_floor());
    SELECT s.id, s.recorded_at INTO first, oldest FROM staging s WHERE s.id > floor ORDER BY s.id LIMIT 1;
    IF first IS NULL THEN
        depth := 0;
        exact := true;
        RETURN;
    END IF;
    depth := 1;
    exact := false;
    IF counted > 0 THEN
        SELECT count(*) INTO depth FROM (SELECT FROM staging s WHERE s.id >= first ORDER BY s.id LIMIT counted + 1) AS c;
        exact := depth <= counted;
    END IF;
    IF NOT exact THEN
        -- The sequence is no part of the snapshot, and is read later: it is not behind any row that was seen.
        depth := greatest(depth, pg_sequence_last_value(pg_get_serial_sequence('staging', 'id')::regclass)
                                 - greatest(numbered, first - 1));
    END IF;
END
$$;

-- The transaction that holds back those who follow the log under `boundary`, or would: of all that have written and still
-- run, anywhere in the cluster, the one with the lowest id. No row, if there is none or none can be seen: of
-- other roles' sessions only members of pg_read_all_stats see what they do.
CREATE FUNCTION oldest_writer(OUT seconds double precision, OUT pid integer, OUT application text, OUT state text)
RETURNS SETOF record
LANGUAGE sql STABLE
AS $$
    SELECT extract(epoch FROM clock_timestamp() - w.began)::double precision, w.pid, w.application, w.state
      FROM (SELECT a.backend_xid AS xid, a.xact_start AS began, a.pid, a.application_name AS application, a.state
              FROM pg_stat_activity a
             WHERE a.backend_xid IS NOT NULL AND a.xact_start IS NOT NULL AND a.pid <> pg_backend_pid()
             UNION ALL
            -- One that was prepared belongs to no session, and may be forgotten for ever.
            SELECT p.transaction, p.prepared, NULL, '', format('prepared as "%s"', p.gid) FROM pg_prepared_xacts p) AS w
     ORDER BY age(w.xid) DESC LIMIT 1
$$;
