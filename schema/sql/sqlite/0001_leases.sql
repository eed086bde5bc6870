-- Lease locks, version 1, for SQLite 3.37 or later. Every statement can be run again. All times are
-- whole microseconds since 1970-01-01 00:00:00 UTC, by the clock of the database, and
-- datetime(expires_at / 1000000, 'unixepoch') shows them. STRICT, because SQLite otherwise stores
-- the text 'a' and the bytes x'61' as two names. WITHOUT ROWID, because then the primary key is the
-- table.

-- A lease: its owner promises to renew it before it expires. Many locks share one lease, so one
-- small UPDATE of one row renews them all.
CREATE TABLE IF NOT EXISTS sqllock_lease (
    id         BLOB    NOT NULL PRIMARY KEY, -- 16 random bytes, never reused
    owner      TEXT    NOT NULL,             -- name of the owner, as the owner calls itself
    host       TEXT    NOT NULL,             -- host name of the owner
    pid        INTEGER NOT NULL,             -- process id of the owner on that host
    ttl_us     INTEGER NOT NULL,             -- TTL in microseconds, which a renewal adds to the time of the database
    renewals   INTEGER NOT NULL DEFAULT 0,   -- count of renewals: shows that the lease is alive, without trusting a clock
    changes    INTEGER NOT NULL DEFAULT 0,   -- count of changes by others to the locks of this lease, which its owner reads when it renews
    created_at INTEGER NOT NULL,             -- when the lease was created
    expires_at INTEGER NOT NULL              -- when the lease expires unless it is renewed
) STRICT, WITHOUT ROWID;

-- A lock: one row per name. The row stays after the release, because its token must never fall:
-- deleting a row by hand makes tokens start again. lease_id is deliberately not a foreign key: a
-- lease whose row is gone means a dead holder.
CREATE TABLE IF NOT EXISTS sqllock_lock (
    name        BLOB    NOT NULL PRIMARY KEY, -- the name, byte for byte, CAST(name AS TEXT) decodes most
    token       INTEGER NOT NULL,             -- the highest fencing token given: never falls
    lease_id    BLOB,                         -- the lease that holds the name, or NULL (without a row it is dead, and the name can be taken over)
    acquired_at INTEGER NOT NULL,             -- when the name was last acquired
    released_at INTEGER,                      -- when the name was last released
    hold_until  INTEGER,                      -- end of the minimum hold: until then the name is not free, even if released
    waiter_until INTEGER,                     -- until when another process is assumed to wait for the name (advisory)
    waiter_since INTEGER,                     -- since when the longest waiter has waited, in microseconds since 1970
    permits     INTEGER,                      -- limit of holders, as last requested, each with a permit row (0: no limit, NULL: no permits)
    exclusive_waiter_until INTEGER,           -- until when no share or permit is granted, because a waiter waits for the whole name
    metadata    BLOB    NOT NULL DEFAULT x''  -- metadata that the holder attached, opaque
) STRICT, WITHOUT ROWID;

-- A permit: one row per holder of a share or permit of a name. Its release deletes the row. Its
-- token is one of the tokens of the name, so no row is ever inserted again.
CREATE TABLE IF NOT EXISTS sqllock_permit (
    name        BLOB    NOT NULL, -- the name, byte for byte, as in the table of locks
    token       INTEGER NOT NULL, -- fencing token of this holder: the token of the name at its acquisition
    lease_id    BLOB    NOT NULL, -- the lease that has the permit (without a row it is dead, and the permit can be cleared)
    permits     INTEGER NOT NULL, -- limit of holders that this holder requested, of which the smallest of a name counts (0: no limit)
    acquired_at INTEGER NOT NULL, -- when the permit was acquired
    PRIMARY KEY (name, token)
) STRICT, WITHOUT ROWID;

-- One row per numbered file that has been applied. The highest is the version.
CREATE TABLE IF NOT EXISTS sqllock_version (
    version INTEGER NOT NULL PRIMARY KEY, -- number of an applied file
    lowest  INTEGER NOT NULL              -- lowest version that a program has to know to use the tables as this file leaves them
) STRICT;

INSERT INTO sqllock_version (version, lowest) VALUES (1, 1) ON CONFLICT DO NOTHING;
