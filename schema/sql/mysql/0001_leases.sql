-- Lease locks, version 1, for MySQL and MariaDB. Every statement may be run
-- again, and by several processes at once. All times are UTC.
-- Indexes stand inside CREATE TABLE, for MySQL has no CREATE INDEX IF NOT EXISTS.

-- A lease: a promise, with an end, that its owner is alive. Many locks hang on
-- one lease, so keeping them all is one small UPDATE of one row.
CREATE TABLE IF NOT EXISTS sqllock_lease (
    id         BINARY(16)   NOT NULL COMMENT '16 random bytes, never used again',
    owner      VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'who holds the lease, in the owner''s words',
    host       VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'the owner''s host name',
    pid        BIGINT       NOT NULL COMMENT 'the owner''s process id on that host',
    ttl_us     BIGINT       NOT NULL COMMENT 'microseconds that a renewal adds, counted from the database''s clock',
    renewals   BIGINT       NOT NULL DEFAULT 0 COMMENT 'counts renewals: tells a live lease from a stopped one without trusting a clock',
    changes    BIGINT       NOT NULL DEFAULT 0 COMMENT 'counts what others did to the locks of this lease, for its owner to see at the next renewal',
    created_at DATETIME(6)  NOT NULL COMMENT 'when the lease began, UTC, by the database''s clock',
    expires_at DATETIME(6)  NOT NULL COMMENT 'when the lease ends unless renewed, UTC, by the database''s clock',
    PRIMARY KEY (id),
    KEY sqllock_lease_expires_idx (expires_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: who is alive, and until when. Deleting a row loses every lock that hangs on it.';

-- A lock: one row per name. The row stays after the release, because its token
-- must never fall: deleting a row by hand makes tokens start again.
-- VARBINARY, for every text collation takes some different names for the same.
-- lease_id is no foreign key on purpose: a lease that is gone means "dead", and
-- a guard on a lock row must never wait for the renewal of a lease row.
CREATE TABLE IF NOT EXISTS sqllock_lock (
    name        VARBINARY(1024) NOT NULL COMMENT 'the name, byte for byte; CONVERT(name USING utf8mb4) reads most',
    token       BIGINT          NOT NULL COMMENT 'fencing token: rises with every acquisition, never falls',
    lease_id    BINARY(16)      NULL COMMENT 'the lease that holds the name; NULL: free; of a lease that is gone: dead, free to take over',
    acquired_at DATETIME(6)     NOT NULL COMMENT 'when the name was last acquired, UTC, by the database''s clock',
    released_at DATETIME(6)     NULL COMMENT 'when the name was last released, UTC, by the database''s clock',
    hold_until  DATETIME(6)     NULL COMMENT 'until when the name is not free though it was released, UTC, by the database''s clock',
    waiter_until DATETIME(6)    NULL COMMENT 'until when another process is thought to wait for the name, UTC, by the database''s clock; a hint that decides nothing',
    waiter_since BIGINT         NULL COMMENT 'since when it does that has waited longest, in microseconds since 1970',
    permits     BIGINT          NULL COMMENT 'how many may hold the name together, as who came last has asked, each with a row of its own in the table of permits; 0: any number; NULL: the name is for one holder',
    exclusive_waiter_until DATETIME(6) NULL COMMENT 'until when nobody else joins those who hold the name together, because somebody waits to hold it alone, UTC',
    metadata    VARBINARY(1024) NOT NULL DEFAULT x'' COMMENT 'whatever the holder attached, opaque',
    PRIMARY KEY (name)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: which lease holds which name. Rows stay after release: the token must only rise.';

-- A permit: one row per holder of a name that several hold together, deleted when the holder
-- releases. Its token is one of the name's, and so no row is ever made again.
CREATE TABLE IF NOT EXISTS sqllock_permit (
    name        VARBINARY(1024) NOT NULL COMMENT 'the name, byte for byte, as in the table of locks',
    token       BIGINT          NOT NULL COMMENT 'fencing token of this holder: what that of the name was when it came',
    lease_id    BINARY(16)      NOT NULL COMMENT 'the lease that has the permit; of a lease that is gone: dead, to be cleared',
    permits     BIGINT          NOT NULL COMMENT 'how many may hold the name together at most, as its holder has asked; the smallest of a name counts; 0: any number',
    acquired_at DATETIME(6)     NOT NULL COMMENT 'when the permit was acquired, UTC, by the database''s clock',
    PRIMARY KEY (name, token)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: who holds a name together with others. A row goes with its release.';

-- One row per numbered file that has been applied; the highest is the version.
CREATE TABLE IF NOT EXISTS sqllock_version (
    version INT NOT NULL COMMENT 'number of an applied file',
    lowest  INT NOT NULL COMMENT 'programs that know this version, or a later one, work on the tables as the file leaves them',
    PRIMARY KEY (version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: the numbered files applied to these tables; the highest is the version';

INSERT IGNORE INTO sqllock_version (version, lowest) VALUES (1, 1);
