-- Keeps the answer to a request that appended nothing, such as a command that was refused; false if an answer is kept under
-- that id already.
CREATE FUNCTION keep_outcome(id text, fingerprint bytea, answer text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO outcomes (id, fingerprint, answer) VALUES (keep_outcome.id, keep_outcome.fingerprint, answer::json)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;

-- Forgets up to `batch` outcomes that are older than the store keeps them; how many it were.
CREATE FUNCTION forget_outcomes(batch integer) RETURNS integer
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    forgotten integer;
BEGIN
    DELETE FROM outcomes o
     WHERE o.id IN (SELECT old.id FROM outcomes old, store s
                     WHERE old.recorded_at < clock_timestamp() - s.outcomes_kept
                     ORDER BY old.recorded_at LIMIT batch);
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;
