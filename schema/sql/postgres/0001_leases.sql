-- Lease locks, version 1, for PostgreSQL. Every statement may be run again.
-- When several processes may run this file at once, let them queue first
-- (`sqllock schema apply` does): CREATE TABLE IF NOT EXISTS can fail when raced.

-- A lease: a promise, with an end, that its owner is alive. Many locks hang on
-- one lease, so keeping them all is one small UPDATE of one row.
CREATE TABLE IF NOT EXISTS sqllock_lease (
    id         bytea       NOT NULL PRIMARY KEY,
    owner      text        NOT NULL,
    host       text        NOT NULL,
    pid        bigint      NOT NULL,
    ttl_us     bigint      NOT NULL,
    renewals   bigint      NOT NULL DEFAULT 0,
    changes    bigint      NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

COMMENT ON TABLE sqllock_lease IS 'sqllock: who is alive, and until when. Deleting a row loses every lock that hangs on it.';
COMMENT ON COLUMN sqllock_lease.id IS '16 random bytes, never used again';
COMMENT ON COLUMN sqllock_lease.owner IS 'who holds the lease, in the owner''s words';
COMMENT ON COLUMN sqllock_lease.host IS 'the owner''s host name';
COMMENT ON COLUMN sqllock_lease.pid IS 'the owner''s process id on that host';
COMMENT ON COLUMN sqllock_lease.ttl_us IS 'microseconds that a renewal adds, counted from the database''s clock';
COMMENT ON COLUMN sqllock_lease.renewals IS 'counts renewals, so that a waiter can tell a live lease from a stopped one without trusting a clock';
COMMENT ON COLUMN sqllock_lease.changes IS 'counts what others did to the locks of this lease, for its owner to see at the next renewal';
COMMENT ON COLUMN sqllock_lease.created_at IS 'when the lease began, by the database''s clock';
COMMENT ON COLUMN sqllock_lease.expires_at IS 'when the lease ends unless renewed, by the database''s clock';

-- A lock: one row per name. The row stays after the release, because its token
-- must never fall: deleting a row by hand makes tokens start again.
-- lease_id is no foreign key on purpose: a lease that is gone means "dead", and
-- a guard on a lock row must never wait for the renewal of a lease row.
CREATE TABLE IF NOT EXISTS sqllock_lock (
    name        bytea       NOT NULL PRIMARY KEY,
    token       bigint      NOT NULL,
    lease_id    bytea,
    acquired_at timestamptz NOT NULL,
    released_at timestamptz,
    hold_until  timestamptz,
    waiter_until timestamptz,
    waiter_since bigint,
    permits     bigint,
    exclusive_waiter_until timestamptz,
    metadata    bytea       NOT NULL DEFAULT ''
);

COMMENT ON TABLE sqllock_lock IS 'sqllock: which lease holds which name. Rows stay after release: the token must only rise.';
COMMENT ON COLUMN sqllock_lock.name IS 'the name, byte for byte; convert_from(name, ''UTF8'') reads most';
COMMENT ON COLUMN sqllock_lock.token IS 'fencing token: rises with every acquisition, never falls';
COMMENT ON COLUMN sqllock_lock.lease_id IS 'the lease that holds the name; NULL: free; of a lease that is gone: dead, free to take over';
COMMENT ON COLUMN sqllock_lock.acquired_at IS 'when the name was last acquired, by the database''s clock';
COMMENT ON COLUMN sqllock_lock.released_at IS 'when the name was last released, by the database''s clock';
COMMENT ON COLUMN sqllock_lock.hold_until IS 'until when the name is not free though it was released, by the database''s clock';
COMMENT ON COLUMN sqllock_lock.waiter_until IS 'until when another process is thought to wait for the name, by the database''s clock; a hint that decides nothing';
COMMENT ON COLUMN sqllock_lock.waiter_since IS 'since when it does that has waited longest, in microseconds since 1970';
COMMENT ON COLUMN sqllock_lock.permits IS 'how many may hold the name together, as who came last has asked, each with a row of its own in the table of permits; 0: any number; NULL: the name is for one holder';
COMMENT ON COLUMN sqllock_lock.exclusive_waiter_until IS 'until when nobody else joins those who hold the name together, because somebody waits to hold it alone';
COMMENT ON COLUMN sqllock_lock.metadata IS 'whatever the holder attached, opaque';

-- A permit: one row per holder of a name that several hold together, deleted when the holder
-- releases. Its token is one of the name's, and so no row is ever made again.
CREATE TABLE IF NOT EXISTS sqllock_permit (
    name        bytea       NOT NULL,
    token       bigint      NOT NULL,
    lease_id    bytea       NOT NULL,
    permits     bigint      NOT NULL,
    acquired_at timestamptz NOT NULL,
    PRIMARY KEY (name, token)
);

COMMENT ON TABLE sqllock_permit IS 'sqllock: who holds a name together with others. A row goes with its release.';
COMMENT ON COLUMN sqllock_permit.name IS 'the name, byte for byte, as in the table of locks';
COMMENT ON COLUMN sqllock_permit.token IS 'fencing token of this holder: what that of the name was when it came';
COMMENT ON COLUMN sqllock_permit.lease_id IS 'the lease that has the permit; of a lease that is gone: dead, to be cleared';
COMMENT ON COLUMN sqllock_permit.permits IS 'how many may hold the name together at most, as its holder has asked; the smallest of a name counts; 0: any number';
COMMENT ON COLUMN sqllock_permit.acquired_at IS 'when the permit was acquired, by the database''s clock';

-- For the purge of dead leases. Names have no other index than their key: what a release changes
-- is in none, and so costs little.
CREATE INDEX IF NOT EXISTS sqllock_lease_expires_idx ON sqllock_lease (expires_at);

-- One row per numbered file that has been applied; the highest is the version.
CREATE TABLE IF NOT EXISTS sqllock_version (
    version integer NOT NULL PRIMARY KEY,
    lowest  integer NOT NULL
);

COMMENT ON TABLE sqllock_version IS 'sqllock: the numbered files applied to these tables; the highest is the version';
COMMENT ON COLUMN sqllock_version.version IS 'number of an applied file';
COMMENT ON COLUMN sqllock_version.lowest IS 'programs that know this version, or a later one, work on the tables as the file leaves them';

INSERT INTO sqllock_version (version, lowest) VALUES (1, 1) ON CONFLICT DO NOTHING;
