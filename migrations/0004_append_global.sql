-- `global`: one lock for the whole store, from before the check to the commit.
--
-- Appends run one after the other, so each sees all that came before it, and positions become visible in their own
-- order, without a gap: whoever holds the lock continues from the highest one, and a rollback leaves nothing.
-- A follower needs no more than a position. No two appends ever commit together, which is what it costs.
CREATE FUNCTION append_global(a append_batch) RETURNS append_result
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    statuses text[];
BEGIN
    PERFORM lock_store(exclusive => true);
    statuses := judge(a);
    RETURN ROW(statuses, write_next_events(a, statuses));
END
$$;
