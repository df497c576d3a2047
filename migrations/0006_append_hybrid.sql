-- `hybrid`: a lock for each key for the check, then the lock of the whole store for the insert.
--
-- The check is as safe as under `boundary`, the positions are as under `global`: whoever holds the store's lock
-- continues from the highest one and keeps the lock until the commit. Only the checks run in parallel, and the commit
-- is what takes time: it is about as fast as `global`.
--
-- A condition that has a clause without a key is checked under the store's lock too. Everybody takes that lock in one
-- mode, after the keys.
CREATE FUNCTION append_hybrid(a append_batch) RETURNS append_result
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    statuses text[];
    positions bigint[];
BEGIN
    PERFORM lock_keys(a);
    IF a.unscoped THEN
        PERFORM lock_store(exclusive => true);
    END IF;
    statuses := judge(a);
    IF 'appended' = ANY (statuses) THEN
        PERFORM lock_store(exclusive => true);
        positions := write_next_events(a, statuses);
    END IF;
    RETURN ROW(statuses, positions);
END
$$;
