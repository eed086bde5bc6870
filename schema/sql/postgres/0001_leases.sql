-- Lease locks, version 1, for PostgreSQL. Every statement can be run again. If several processes
-- may run this file at once, run it under a lock (`sqllock schema apply` does): CREATE TABLE IF NOT
-- EXISTS can fail in a race.

-- A lease: its owner promises to renew it before it expires. Many locks share one lease, so one
-- small UPDATE of one row renews them all.
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

COMMENT ON TABLE sqllock_lease IS 'sqllock: one row per lease, which its owner renews while alive. Deleting a row loses every lock of the lease.';
COMMENT ON COLUMN sqllock_lease.id IS '16 random bytes, never reused';
COMMENT ON COLUMN sqllock_lease.owner IS 'name of the owner, as the owner calls itself';
COMMENT ON COLUMN sqllock_lease.host IS 'host name of the owner';
COMMENT ON COLUMN sqllock_lease.pid IS 'process id of the owner on that host';
COMMENT ON COLUMN sqllock_lease.ttl_us IS 'TTL in microseconds, which a renewal adds to the time of the database';
COMMENT ON COLUMN sqllock_lease.renewals IS 'count of renewals: shows that the lease is alive, without trusting a clock';
COMMENT ON COLUMN sqllock_lease.changes IS 'count of changes by others to the locks of this lease, which its owner reads when it renews';
COMMENT ON COLUMN sqllock_lease.created_at IS 'when the lease was created, by the database''s clock';
COMMENT ON COLUMN sqllock_lease.expires_at IS 'when the lease expires unless it is renewed, by the database''s clock';

-- A lock: one row per name. The row stays after the release, because its token must never fall:
-- deleting a row by hand makes tokens start again. lease_id is deliberately not a foreign key: a
-- lease whose row is gone means a dead holder, and a guard on a lock row must never wait for the
-- renewal of a lease row.
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

COMMENT ON TABLE sqllock_lock IS 'sqllock: one row per name, with the lease that holds it. Rows stay after release: the token must only rise.';
COMMENT ON COLUMN sqllock_lock.name IS 'the name, byte for byte, convert_from(name, ''UTF8'') decodes most';
COMMENT ON COLUMN sqllock_lock.token IS 'the highest fencing token given: never falls';
COMMENT ON COLUMN sqllock_lock.lease_id IS 'the lease that holds the name, or NULL (without a row it is dead, and the name can be taken over)';
COMMENT ON COLUMN sqllock_lock.acquired_at IS 'when the name was last acquired, by the database''s clock';
COMMENT ON COLUMN sqllock_lock.released_at IS 'when the name was last released, by the database''s clock';
COMMENT ON COLUMN sqllock_lock.hold_until IS 'end of the minimum hold: until then the name is not free, even if released, by the database''s clock';
COMMENT ON COLUMN sqllock_lock.waiter_until IS 'until when another process is assumed to wait for the name, by the database''s clock (advisory)';
COMMENT ON COLUMN sqllock_lock.waiter_since IS 'since when the longest waiter has waited, in microseconds since 1970';
COMMENT ON COLUMN sqllock_lock.permits IS 'limit of holders, as last requested, each with a permit row (0: no limit, NULL: no permits)';
COMMENT ON COLUMN sqllock_lock.exclusive_waiter_until IS 'until when no share or permit is granted, because a waiter waits for the whole name';
COMMENT ON COLUMN sqllock_lock.metadata IS 'metadata that the holder attached, opaque';

-- A permit: one row per holder of a share or permit of a name. Its release deletes the row. Its
-- token is one of the tokens of the name, so no row is ever inserted again.
CREATE TABLE IF NOT EXISTS sqllock_permit (
    name        bytea       NOT NULL,
    token       bigint      NOT NULL,
    lease_id    bytea       NOT NULL,
    permits     bigint      NOT NULL,
    acquired_at timestamptz NOT NULL,
    PRIMARY KEY (name, token)
);

COMMENT ON TABLE sqllock_permit IS 'sqllock: one row per share or permit of a name. Its release deletes the row.';
COMMENT ON COLUMN sqllock_permit.name IS 'the name, byte for byte, as in the table of locks';
COMMENT ON COLUMN sqllock_permit.token IS 'fencing token of this holder: the token of the name at its acquisition';
COMMENT ON COLUMN sqllock_permit.lease_id IS 'the lease that has the permit (without a row it is dead, and the permit can be cleared)';
COMMENT ON COLUMN sqllock_permit.permits IS 'limit of holders that this holder requested, of which the smallest of a name counts (0: no limit)';
COMMENT ON COLUMN sqllock_permit.acquired_at IS 'when the permit was acquired, by the database''s clock';

-- One row per numbered file that has been applied. The highest is the version.
CREATE TABLE IF NOT EXISTS sqllock_version (
    version integer NOT NULL PRIMARY KEY,
    lowest  integer NOT NULL
);

COMMENT ON TABLE sqllock_version IS 'sqllock: the numbered files applied to these tables, of which the highest is the version';
COMMENT ON COLUMN sqllock_version.version IS 'number of an applied file';
COMMENT ON COLUMN sqllock_version.lowest IS 'lowest version that a program has to know to use the tables as this file leaves them';

INSERT INTO sqllock_version (version, lowest) VALUES (1, 1) ON CONFLICT DO NOTHING;
