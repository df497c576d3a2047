-- Moves up to `batch` staged rows to the log, oldest id first, and numbers them; `more` says whether some are left. A
-- flush is bounded in bytes, too, but for its first row: one that could not end within the statement timeout would
-- be begun again for ever.
--
-- The flushers' lock is what makes a second flusher harmless: it waits, and then sees what the first has
-- done, because each statement below begins after the lock is held. Positions continue from the highest one:
-- under `staging` nobody else inserts events, so a rollback leaves no gap, and no counter has to agree with
-- the log (or bloats beside a long snapshot).
--
-- Order within a boundary is kept: two appends that share a key hold its lock one after the other, so the
-- second one's rows have higher ids, and whoever sees them sees the first one's rows too.
CREATE FUNCTION flush(batch integer, OUT flushed integer, OUT head bigint, OUT more boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    most_bytes CONSTANT bigint := 8 * 1024 * 1024;
    candidates bigint[];
    chosen bigint[];
    floor CONSTANT bigint := staging_floor();
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'flush() needs READ COMMITTED: each of its statements must see a snapshot of its own'
            USING ERRCODE = 'invalid_transaction_state';
    END IF;

    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 2);

    SELECT coalesce(max(e.position), 0) INTO head FROM events e;

    SELECT array_agg(w.id ORDER BY w.id), array_agg(w.id ORDER BY w.id) FILTER (WHERE w.bytes_before < most_bytes)
      INTO candidates, chosen
      FROM (SELECT o.id, sum(o.bytes) OVER (ORDER BY o.id) - o.bytes AS bytes_before
              FROM (SELECT s.id, s.bytes FROM staging s WHERE s.id > floor ORDER BY s.id LIMIT batch) AS o) AS w;

    WITH taken AS (
        DELETE FROM staging s WHERE s.id = ANY (chosen) RETURNING s.*
    ), numbered AS (
        SELECT flush.head + row_number() OVER (ORDER BY t.id) AS position, t.* FROM taken t
    ), moved AS (
        INSERT INTO events (position, staged_id, recorded_at, version_id, type, tags,
                            command_id, correlation_id, causation_id, data, metadata, bytes)
        SELECT n.position, n.id, n.recorded_at, n.version_id, n.type, n.tags,
               n.command_id, n.correlation_id, n.causation_id, n.data, n.metadata, n.bytes
          FROM numbered n ORDER BY n.position
    ), indexed AS (
        INSERT INTO event_keys (key, position)
        SELECT k.key, n.position FROM numbered n CROSS JOIN unnest(n.keys) AS k (key) ORDER BY 1, 2
    ), unindexed AS (
        DELETE FROM staged_keys sk
         USING (SELECT k.key, t.id FROM taken t CROSS JOIN unnest(t.keys) AS k (key)) AS gone
         WHERE sk.key = gone.key AND sk.staged_id = gone.id
    ), typed AS (
        INSERT INTO event_types (type)
        SELECT DISTINCT n.type FROM numbered n
         WHERE NOT EXISTS (SELECT FROM event_types t WHERE t.type = n.type)
    )
    SELECT count(*)::integer INTO flushed FROM numbered;

    head := head + flushed;
    more := flushed = batch OR flushed < coalesce(cardinality(candidates), 0);
    IF flushed > 0 THEN
        -- Here, and never in an append: NOTIFY takes a lock of the whole database at commit.
        PERFORM pg_notify('weir_' || current_schema(), head::text);
    END IF;
END
$$;

-- Raising the floor of staging, in two steps, because no append may be under way that could still stage an id below it.
--
-- First: the highest id that has been handed out, and the transactions that may hold one up to it. An append reads
-- the table `store` before it does anything else, and so holds its lock for as long as it runs.
CREATE FUNCTION floor_candidate(OUT highest bigint, OUT running text[])
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    highest := coalesce(pg_sequence_last_value(pg_get_serial_sequence('staging', 'id')), 0);
    running := ARRAY(SELECT l.virtualtransaction FROM pg_locks l
                      WHERE l.locktype = 'relation' AND l.relation = 'store'::regclass);
END
$$;

-- Second, any time later: when all of those have ended, and what they staged is flushed, it is the new floor.
CREATE FUNCTION raise_floor(highest bigint, running text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_locks l WHERE l.virtualtransaction = ANY (running)) THEN
        RETURN false;
    END IF;
    IF EXISTS (SELECT FROM staging s WHERE s.id > staging_floor() AND s.id <= highest) THEN
        RETURN false;
    END IF;
    INSERT INTO staging_floors (id) VALUES (highest) ON CONFLICT DO NOTHING;
    DELETE FROM staging_floors f WHERE f.id < highest;
    RETURN true;
END
$$;

-- Takes or renews the flusher's lease for `holder`; true if it now leads.
--
--            take_lease(me)                       take_lease(me), every third of the lease
--   follower ─────────► leader ◄──────────────────────────────────┐
--      ▲  someone else's   │                                      │
--      └───────────────────┴─ lease ran out, and another took it ─┘
--
-- The database's clock alone decides when a lease has run out, so hosts need not agree on the time. A leader
-- that hangs, or whose connection does, stops renewing and is replaced; should it come back in the middle of
-- a flush, the lock in flush() keeps it harmless.
CREATE FUNCTION take_lease(me uuid, lease interval) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO flusher_lease AS l (holder, expires_at) VALUES (me, clock_timestamp() + lease)
    ON CONFLICT (only_row) DO UPDATE
       SET holder = excluded.holder, expires_at = excluded.expires_at
     WHERE l.holder = excluded.holder OR l.expires_at < clock_timestamp();
    RETURN FOUND;
END
$$;

-- Empties staging. The caller holds the lock of the table `store`, so nothing is added meanwhile.
CREATE FUNCTION flush_all() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    WHILE (SELECT f.flushed > 0 FROM flush(10000) AS f) LOOP
    END LOOP;
END
$$;

-- Begins an epoch behind the highest position. The caller holds the lock of the table `store`.
CREATE FUNCTION begin_epoch(strategy text) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    head bigint := (SELECT coalesce(max(e.position), 0) FROM events e);
BEGIN
    PERFORM setval('boundary_positions', greatest(head, 1), head > 0);
    INSERT INTO epochs (number, after_position, strategy, system_identifier)
    SELECT max(e.number) + 1, head, begin_epoch.strategy, (SELECT c.system_identifier FROM pg_control_system() c)
      FROM epochs e;
END
$$;

-- Whether the present epoch began in another cluster than this one: then a dump of the store was restored here.
-- (A standby that was promoted, or a cluster that was copied as a whole, has the same identifier and the same transactions.)
CREATE FUNCTION has_moved() RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT e.system_identifier <> (SELECT c.system_identifier FROM pg_control_system() c)
      FROM epochs e ORDER BY e.number DESC LIMIT 1
$$;

-- Takes the store into use in this cluster, after a dump of it was restored here; true if that was so.
--
-- The transaction ids of the events belong to the other cluster. They still tell in which order the events of their
-- epoch may be followed, for none of those transactions runs any more; those of new events must not be held against them,
-- and so an epoch begins. Whoever flushed before does not do so here.
CREATE FUNCTION adopt_cluster() RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    LOCK TABLE store IN ACCESS EXCLUSIVE MODE;
    IF NOT has_moved() THEN
        RETURN false;
    END IF;
    PERFORM begin_epoch((SELECT s.strategy FROM store s));
    DELETE FROM flusher_lease;
    PERFORM pg_notify('weir_' || current_schema(), 'settings');
    RETURN true;
END
$$;

-- Changes the store's strategy, online; true if it was another before.
--
-- The table lock waits for all appends under the old strategy and lets none begin: those that come meanwhile wait for
-- as long as the longest append that runs now, and then hear that the strategy is another. What is staged is
-- flushed before the change. (Flush as much as possible before calling this; the rest is done under the lock.)
-- Read tokens stay good: everything that comes after the change has a higher position than everything before it, and
-- events that were staged are known by their id.
CREATE FUNCTION set_strategy(wanted text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    LOCK TABLE store IN ACCESS EXCLUSIVE MODE;
    IF (SELECT s.strategy = wanted FROM store s) THEN
        RETURN false;
    END IF;
    PERFORM flush_all();
    UPDATE store SET strategy = wanted;
    PERFORM begin_epoch(wanted);
    PERFORM pg_notify('weir_' || current_schema(), 'settings');
    RETURN true;
END
$$;
