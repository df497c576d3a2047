-- The log: what has been numbered (events) and what is accepted but not numbered yet (staging).
--
-- A store is one schema. Nothing here names it: the connection's search_path does, so that one database
-- can hold many stores.

-- The settings of the store as a whole: they hold for every host. Every append reads the row before it
-- does anything else and so holds the table's weakest lock until it has ended; whoever changes a setting takes the
-- strongest, and so waits for all appends under the old one and lets none begin. See set_strategy().
CREATE TABLE store (
    only_row            boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (only_row),
    strategy            text    NOT NULL DEFAULT 'staging'
                                CHECK (strategy IN ('global', 'boundary', 'hybrid', 'staging')),
    -- Whether a condition may have items without a type or without a tag.
    unscoped_conditions boolean NOT NULL DEFAULT false,
    -- How long the outcome of an append with an id of its caller's is kept.
    outcomes_kept       interval NOT NULL DEFAULT '7 days'
);
INSERT INTO store DEFAULT VALUES;

-- What became of the commands and appends to which their callers gave an id: the same id again gets the same outcome,
-- whatever host it reaches. Written in the transaction of the append, so one is never without the other.
CREATE TABLE outcomes (
    id          text        NOT NULL PRIMARY KEY,
    -- SHA-256 of what was asked for: another request under the same id is a mistake.
    fingerprint bytea       NOT NULL,
    -- The answer, for whoever asked to make sense of.
    answer      json        NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX outcomes_by_age ON outcomes (recorded_at);

-- The numbered events. Rows are only ever inserted. Under every strategy but `boundary` positions run 1, 2, 3, …
-- without a gap; the primary key is the only record of how far they have come.
CREATE TABLE events (
    position       bigint      NOT NULL PRIMARY KEY CHECK (position > 0),
    -- The row's id in staging, if it was there. A read that saw the event there recognises it here by this id.
    staged_id      bigint,
    -- The transaction that inserted it, under `boundary` only: positions say nothing there about the order in
    -- which events became visible.
    xid            xid8,
    recorded_at    timestamptz NOT NULL,
    -- The handler's version that wrote it: handler_versions.id. No foreign key: its check would make
    -- every append share a row lock with every other.
    version_id     integer,
    type           text        NOT NULL,
    tags           text[]      NOT NULL,
    command_id     text        NOT NULL,
    -- NULL stands for the command's own id: a command that nothing caused correlates with itself.
    correlation_id text,
    causation_id   text,
    -- json, not jsonb: it is handed back byte for byte.
    data           json        NOT NULL,
    -- What the writer says of the event besides: for programs that append without a handler.
    metadata       json,
    -- How long `data` and `metadata` are, so that a page can be bounded without unpacking them.
    bytes          integer     NOT NULL
);

CREATE INDEX events_by_xid ON events (xid, position) WHERE xid IS NOT NULL;

-- Where `boundary` takes its positions from: it can't take them from the table, in which the rows of appends that run
-- beside it can't be seen. set_strategy() sets it. A rollback leaves a gap.
CREATE SEQUENCE boundary_positions;

-- The log consists of epochs, of which each has one strategy and one rule for the order in which its events may be
-- followed: by position, or under `boundary` by (xid, position). An epoch holds the events from `after_position` on,
-- up to where the next one begins. A change of strategy begins an epoch, and so does the restoration
-- of a dump into another cluster, whose transaction ids have nothing to do with those of the events.
CREATE TABLE epochs (
    number            integer     NOT NULL PRIMARY KEY,
    after_position    bigint      NOT NULL,
    strategy          text        NOT NULL,
    system_identifier bigint      NOT NULL,
    began_at          timestamptz NOT NULL DEFAULT now()
);
INSERT INTO epochs (number, after_position, strategy, system_identifier)
SELECT 1, 0, s.strategy, c.system_identifier FROM store s, pg_control_system() c;

-- One row for each (type, tag) of an event: how a query item finds its events. The key is the 64-bit
-- hash that also names the lock; a collision costs a look at the event, never a wrong answer.
CREATE TABLE event_keys (
    key      bigint NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (key, position)
);

-- The types that have ever been flushed. Few, so that "events with this tag" can be looked up as "events
-- of each of these types with this tag".
CREATE TABLE event_types (
    type text NOT NULL PRIMARY KEY
);

-- Where appends land. Ids are handed out while the append holds its key locks, so they ascend within a key;
-- across keys a lower id may commit after a higher one. CACHE 1 is what makes the first half true.
CREATE TABLE staging (
    id             bigint      GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    recorded_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    version_id     integer,
    type           text        NOT NULL,
    tags           text[]      NOT NULL,
    keys           bigint[]    NOT NULL,
    command_id     text        NOT NULL,
    correlation_id text,
    causation_id   text,
    data           json        NOT NULL,
    metadata       json,
    bytes          integer     NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000000, autovacuum_vacuum_cost_delay = 0
);

-- The keys of staged rows. Without it a check would scan staging, and a backlog would slow the very
-- checks that wait for it.
CREATE TABLE staged_keys (
    key       bigint NOT NULL,
    staged_id bigint NOT NULL,
    PRIMARY KEY (key, staged_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000000, autovacuum_vacuum_cost_delay = 0
);

-- No event is staged with an id up to the highest of these, nor ever will be. Whoever looks at staging begins behind it: rows that
-- were flushed stay in the table and its indexes as dead ones until vacuum may remove them, which beside a long snapshot,
-- such as a dump's, it may not. Rows are inserted and the old ones deleted, so that the newest is found at once even then.
-- See floor_candidate().
CREATE TABLE staging_floors (
    id bigint NOT NULL PRIMARY KEY
);

CREATE FUNCTION staging_floor() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT f.id FROM staging_floors f ORDER BY f.id DESC LIMIT 1), 0)
$$;

-- Who flushes. One row at the most; see take_lease() for the protocol.
CREATE TABLE flusher_lease (
    only_row   boolean     NOT NULL PRIMARY KEY DEFAULT true CHECK (only_row),
    holder     uuid        NOT NULL,
    expires_at timestamptz NOT NULL
);

-- The advisory locks of different stores in one database must not meet. Key locks take a bigint; the locks
-- of a store as a whole live in the space of two integers, which Postgres keeps apart from the first.
CREATE FUNCTION store_salt() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(current_schema(), 0)
$$;
