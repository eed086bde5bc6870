-- Lease locks, version 1, for MySQL and MariaDB. Every statement can be run again, and by several
-- processes at once. All times are UTC.

-- A lease: its owner promises to renew it before it expires. Many locks share one lease, so one
-- small UPDATE of one row renews them all.
CREATE TABLE IF NOT EXISTS sqllock_lease (
    id         BINARY(16)   NOT NULL COMMENT '16 random bytes, never reused',
    owner      VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'name of the owner, as the owner calls itself',
    host       VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'host name of the owner',
    pid        BIGINT       NOT NULL COMMENT 'process id of the owner on that host',
    ttl_us     BIGINT       NOT NULL COMMENT 'TTL in microseconds, which a renewal adds to the time of the database',
    renewals   BIGINT       NOT NULL DEFAULT 0 COMMENT 'count of renewals: shows that the lease is alive, without trusting a clock',
    changes    BIGINT       NOT NULL DEFAULT 0 COMMENT 'count of changes by others to the locks of this lease, which its owner reads when it renews',
    created_at DATETIME(6)  NOT NULL COMMENT 'when the lease was created, UTC, by the database''s clock',
    expires_at DATETIME(6)  NOT NULL COMMENT 'when the lease expires unless it is renewed, UTC, by the database''s clock',
    PRIMARY KEY (id)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: one row per lease, which its owner renews while alive. Deleting a row loses every lock of the lease.';

-- A lock: one row per name. The row stays after the release, because its token must never fall:
-- deleting a row by hand makes tokens start again. The name is VARBINARY, because every text
-- collation treats some different names as equal. lease_id is deliberately not a foreign key: a
-- lease whose row is gone means a dead holder, and a guard on a lock row must never wait for the
-- renewal of a lease row.
CREATE TABLE IF NOT EXISTS sqllock_lock (
    name        VARBINARY(1024) NOT NULL COMMENT 'the name, byte for byte, CONVERT(name USING utf8mb4) decodes most',
    token       BIGINT          NOT NULL COMMENT 'the highest fencing token given: never falls',
    lease_id    BINARY(16)      NULL COMMENT 'the lease that holds the name, or NULL (without a row it is dead, and the name can be taken over)',
    acquired_at DATETIME(6)     NOT NULL COMMENT 'when the name was last acquired, UTC, by the database''s clock',
    released_at DATETIME(6)     NULL COMMENT 'when the name was last released, UTC, by the database''s clock',
    hold_until  DATETIME(6)     NULL COMMENT 'end of the minimum hold: until then the name is not free, even if released, UTC, by the database''s clock',
    waiter_until DATETIME(6)    NULL COMMENT 'until when another process is assumed to wait for the name, UTC, by the database''s clock (advisory)',
    waiter_since BIGINT         NULL COMMENT 'since when the longest waiter has waited, in microseconds since 1970',
    permits     BIGINT          NULL COMMENT 'limit of holders, as last requested, each with a permit row (0: no limit, NULL: no permits)',
    exclusive_waiter_until DATETIME(6) NULL COMMENT 'until when no share or permit is granted, because a waiter waits for the whole name, UTC',
    metadata    VARBINARY(1024) NOT NULL DEFAULT x'' COMMENT 'metadata that the holder attached, opaque',
    PRIMARY KEY (name)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: one row per name, with the lease that holds it. Rows stay after release: the token must only rise.';

-- A permit: one row per holder of a share or permit of a name. Its release deletes the row. Its
-- token is one of the tokens of the name, so no row is ever inserted again.
CREATE TABLE IF NOT EXISTS sqllock_permit (
    name        VARBINARY(1024) NOT NULL COMMENT 'the name, byte for byte, as in the table of locks',
    token       BIGINT          NOT NULL COMMENT 'fencing token of this holder: the token of the name at its acquisition',
    lease_id    BINARY(16)      NOT NULL COMMENT 'the lease that has the permit (without a row it is dead, and the permit can be cleared)',
    permits     BIGINT          NOT NULL COMMENT 'limit of holders that this holder requested, of which the smallest of a name counts (0: no limit)',
    acquired_at DATETIME(6)     NOT NULL COMMENT 'when the permit was acquired, UTC, by the database''s clock',
    PRIMARY KEY (name, token)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: one row per share or permit of a name. Its release deletes the row.';

-- One row per numbered file that has been applied. The highest is the version.
CREATE TABLE IF NOT EXISTS sqllock_version (
    version INT NOT NULL COMMENT 'number of an applied file',
    lowest  INT NOT NULL COMMENT 'lowest version that a program has to know to use the tables as this file leaves them',
    PRIMARY KEY (version)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
  COMMENT='sqllock: the numbered files applied to these tables, of which the highest is the version';

INSERT IGNORE INTO sqllock_version (version, lowest) VALUES (1, 1);
