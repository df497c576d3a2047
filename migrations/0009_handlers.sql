-- The registry: which handlers there are, in which versions, and which version of each is active.

-- A version is the component itself; its digest is its name, so a version can't change under that name.
CREATE TABLE handler_versions (
    id          integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    handler     text        NOT NULL,
    digest      bytea       NOT NULL UNIQUE CHECK (digest = sha256(component)),
    -- NULL for a version that is known by name only, as the writer of events that were imported.
    component   bytea,
    commands    text[]      NOT NULL,
    event_types text[]      NOT NULL,
    deployed_at timestamptz NOT NULL DEFAULT now()
);
-- A component does not compress, and is read whole.
ALTER TABLE handler_versions ALTER COLUMN component SET STORAGE EXTERNAL;

CREATE TABLE handlers (
    name           text        NOT NULL PRIMARY KEY,
    active_version integer     NOT NULL REFERENCES handler_versions,
    activated_at   timestamptz NOT NULL DEFAULT now()
);

-- Makes a version active, adding it to the registry if it is new there. Returns a status:
--   activated  it is the active version of its handler now
--   unchanged  it was already
--   owned      another handler has one of its commands (named in `command` and `owner`); nothing changed
CREATE FUNCTION deploy(
    new_handler text, new_component bytea, new_commands text[], new_event_types text[],
    OUT status text, OUT version_id integer, OUT command text, OUT owner text
)
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    -- Deployments are rare: one at a time, so that two can't claim one command.
    PERFORM pg_advisory_xact_lock(hashtext(current_schema()), 3);

    SELECT c.command, h.name INTO command, owner
      FROM handlers h
      JOIN handler_versions v ON v.id = h.active_version
     CROSS JOIN unnest(v.commands) AS c (command)
     WHERE h.name <> new_handler AND c.command = ANY (new_commands)
     LIMIT 1;
    IF FOUND THEN
        status := 'owned';
        RETURN;
    END IF;

    INSERT INTO handler_versions (handler, digest, component, commands, event_types)
    VALUES (new_handler, sha256(new_component), new_component, new_commands, new_event_types)
    ON CONFLICT (digest) DO UPDATE
       SET component = excluded.component, commands = excluded.commands, event_types = excluded.event_types,
           deployed_at = now()
     WHERE handler_versions.component IS NULL;
    SELECT v.id INTO STRICT version_id FROM handler_versions v WHERE v.digest = sha256(new_component);

    INSERT INTO handlers AS h (name, active_version) VALUES (new_handler, version_id)
    ON CONFLICT (name) DO UPDATE SET active_version = excluded.active_version, activated_at = now()
     WHERE h.active_version <> excluded.active_version;
    IF FOUND THEN
        status := 'activated';
        PERFORM pg_notify('weir_' || current_schema(), 'handlers');
    ELSE
        status := 'unchanged';
    END IF;
END
$$;
