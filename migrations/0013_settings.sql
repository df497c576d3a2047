-- Changes the settings that are given, all or none, and leaves the others as they are; true if the strategy was another
-- before. See set_strategy(), which holds up appends for as long as it takes.
CREATE FUNCTION change_settings(strategy text, unscoped_conditions boolean, outcomes_kept_seconds bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    changed boolean := false;
BEGIN
    IF strategy IS NOT NULL THEN
        changed := set_strategy(strategy);
    END IF;
    IF unscoped_conditions IS NOT NULL THEN
        -- Under the lock of set_strategy(), because every append takes the store's lock only where they are allowed.
        LOCK TABLE store IN ACCESS EXCLUSIVE MODE;
        UPDATE store s SET unscoped_conditions = change_settings.unscoped_conditions;
    END IF;
    IF outcomes_kept_seconds IS NOT NULL THEN
        -- Appends do not look at it, and need not wait.
        UPDATE store s SET outcomes_kept = make_interval(secs => outcomes_kept_seconds);
    END IF;
    PERFORM pg_notify('weir_' || current_schema(), 'settings');
    RETURN changed;
END
$$;
