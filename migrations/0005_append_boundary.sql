-- `boundary`: a lock for each key, and a position at the insert.
--
-- Appends that share a key run one after the other: the later one sees what the earlier one wrote, and has higher
-- positions and a higher transaction id, because it gets both while it holds the key. (So nothing may be written
-- before the locks are held: that would give the transaction its id too early.) Appends that share none commit in
-- parallel and in any order, and a rollback leaves a gap. A position therefore says nothing about what came
-- before it, except under its own key: read tokens and followers take that into account.
CREATE FUNCTION append_boundary(a append_batch) RETURNS append_result
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    statuses text[];
    positions bigint[];
BEGIN
    PERFORM lock_keys(a);
    IF a.unscoped_allowed THEN
        PERFORM lock_store(exclusive => a.unscoped);
    END IF;
    statuses := judge(a);
    IF 'appended' = ANY (statuses) THEN
        positions := ARRAY(SELECT nextval('boundary_positions') FROM generate_series(1, accepted_events(a, statuses)));
        PERFORM write_events(a, statuses, positions, pg_current_xact_id());
    END IF;
    RETURN ROW(statuses, positions);
END
$$;
