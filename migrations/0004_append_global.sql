-- `global`: one lock for the whole store, from before the check to the commit.
--
-- Appends run one after the other, so each sees all that came before it, and positions become visible in their own
-- order, without a gap: whoever holds the lock continues from the highest one, and a rollback leaves nothing.
-- A follower needs no more than a position. No two appends ever commit together, which is what it costs.
CREATE FUNCTION append_global(a append_request) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    head bigint;
BEGIN
    PERFORM lock_store(exclusive => true);
    IF repeated(a) THEN
        RETURN 'repeated';
    END IF;
    IF conflicts(a) THEN
        RETURN 'conflict';
    END IF;
    SELECT coalesce(max(e.position), 0) INTO head FROM events e;
    PERFORM write_events(a, ARRAY(SELECT head + n FROM generate_series(1, cardinality(a.event_types)) AS n), NULL);
    PERFORM keep_answer(a);
    RETURN 'appended';
END
$$;
