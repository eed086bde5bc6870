-- Lease locks, version 1, for SQLite 3.37 or later. Every statement may be run
-- again. All times are whole microseconds since 1970-01-01 00:00:00 UTC;
-- datetime(expires_at / 1000000, 'unixepoch') reads them.
-- STRICT, for SQLite otherwise stores the text 'a' and the bytes x'61' as two
-- names; WITHOUT ROWID, for then the primary key is the table.

-- A lease: a promise, with an end, that its owner is alive. Many locks hang on
-- one lease, so keeping them all is one small UPDATE of one row.
CREATE TABLE IF NOT EXISTS sqllock_lease (
    id         BLOB    NOT NULL PRIMARY KEY, -- 16 random bytes, never used again
    owner      TEXT    NOT NULL,             -- who holds the lease, in the owner's words
    host       TEXT    NOT NULL,             -- the owner's host name
    pid        INTEGER NOT NULL,             -- the owner's process id on that host
    ttl_us     INTEGER NOT NULL,             -- microseconds that a renewal adds
    renewals   INTEGER NOT NULL DEFAULT 0,   -- counts renewals: tells a live lease from a stopped one without a clock
    changes    INTEGER NOT NULL DEFAULT 0,   -- counts what others did to the locks of this lease, for its owner
    created_at INTEGER NOT NULL,             -- when the lease began
    expires_at INTEGER NOT NULL              -- when the lease ends unless renewed
) STRICT, WITHOUT ROWID;

-- A lock: one row per name. The row stays after the release, because its token
-- must never fall: deleting a row by hand makes tokens start again.
-- lease_id is no foreign key on purpose: a lease that is gone means "dead".
CREATE TABLE IF NOT EXISTS sqllock_lock (
    name        BLOB    NOT NULL PRIMARY KEY, -- the name, byte for byte; CAST(name AS TEXT) reads most
    token       INTEGER NOT NULL,             -- fencing token: rises with every acquisition, never falls
    lease_id    BLOB,                         -- the lease that holds the name; NULL: free; of a lease that is gone: dead
    acquired_at INTEGER NOT NULL,             -- when the name was last acquired
    released_at INTEGER,                      -- when the name was last released
    hold_until  INTEGER,                      -- until when the name is not free though it was released
    waiter_until INTEGER,                     -- until when another process is thought to wait for the name; a hint that decides nothing
    waiter_since INTEGER,                     -- since when it does that has waited longest
    permits     INTEGER,                      -- how many may hold the name together, as who came last has asked; 0: any number; NULL: it is for one holder
    exclusive_waiter_until INTEGER,           -- until when nobody joins them, because somebody waits to hold it alone
    metadata    BLOB    NOT NULL DEFAULT x''  -- whatever the holder attached, opaque
) STRICT, WITHOUT ROWID;

-- A permit: one row per holder of a name that several hold together, deleted when the holder
-- releases. Its token is one of the name's, and so no row is ever made again.
CREATE TABLE IF NOT EXISTS sqllock_permit (
    name        BLOB    NOT NULL, -- the name, byte for byte, as in sqllock_lock
    token       INTEGER NOT NULL, -- fencing token of this holder: what sqllock_lock.token was when it came
    lease_id    BLOB    NOT NULL, -- the lease that has the permit; of a lease that is gone: dead, to be cleared
    permits     INTEGER NOT NULL, -- how many may hold the name together at most, as its holder has asked; the smallest of a name counts; 0: any number
    acquired_at INTEGER NOT NULL, -- when the permit was acquired
    PRIMARY KEY (name, token)
) STRICT, WITHOUT ROWID;

-- For the purge of dead leases.
CREATE INDEX IF NOT EXISTS sqllock_lease_expires_idx ON sqllock_lease (expires_at);

-- One row per numbered file that has been applied; the highest is the version.
CREATE TABLE IF NOT EXISTS sqllock_version (
    version INTEGER NOT NULL PRIMARY KEY, -- number of an applied file
    lowest  INTEGER NOT NULL              -- programs that know this version, or a later one, work on the tables as the file leaves them
) STRICT;

INSERT INTO sqllock_version (version, lowest) VALUES (1, 1) ON CONFLICT DO NOTHING;
