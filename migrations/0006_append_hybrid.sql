-- `hybrid`: a lock for each key for the check, then the lock of the whole store for the insert.
--
-- The check is as safe as under `boundary`, the positions are as under `global`: whoever holds the store's lock
-- continues from the highest one and keeps the lock until the commit. Only the checks run in parallel, and the commit
-- is what takes time: it is about as fast as `global`.
--
-- A condition that has a clause without a key is checked under the store's lock too. Everybody takes that lock in one
-- mode, after the keys.
CREATE FUNCTION append_hybrid(a append_request) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    head bigint;
BEGIN
    PERFORM lock_keys(a);
    IF a.unscoped THEN
        PERFORM lock_store(exclusive => true);
    END IF;
    IF repeated(a) THEN
        RETURN 'repeated';
    END IF;
    IF conflicts(a) THEN
        RETURN 'conflict';
    END IF;
    PERFORM lock_store(exclusive => true);
    SELECT coalesce(max(e.position), 0) INTO head FROM events e;
    PERFORM write_events(a, ARRAY(SELECT head + n FROM generate_series(1, cardinality(a.event_types)) AS n), NULL);
    PERFORM keep_answer(a);
    RETURN 'appended';
END
$$;
