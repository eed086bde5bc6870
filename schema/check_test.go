package schema_test

import (
	"errors"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// damage is a change that makes correct tables incorrect.
type damage struct {
	name   string
	do     []string
	says   []string
	mended bool // Apply repairs it
}

const runApply = "run `sqllock schema apply --db …`"

var damages = map[schema.Dialect][]damage{
	schema.Postgres: {
		{"an integer for a bigint", []string{"ALTER TABLE sqllock_lock ALTER COLUMN token TYPE integer"}, []string{"column sqllock_lock.token is integer not null, and must be bigint not null"}, false},
		{"a timestamp without zone", []string{"ALTER TABLE sqllock_lease ALTER COLUMN expires_at TYPE timestamp"}, []string{"sqllock_lease.expires_at is timestamp without time zone not null"}, false},
		{"a lock that cannot be free", []string{"ALTER TABLE sqllock_lock ALTER COLUMN lease_id SET NOT NULL"}, []string{"column sqllock_lock.lease_id is bytea not null, and must be bytea"}, false},
		{"a missing default", []string{"ALTER TABLE sqllock_lock ALTER COLUMN metadata DROP DEFAULT"}, []string{"must be bytea not null with a default"}, false},
		{"a missing primary key", []string{"ALTER TABLE sqllock_lock DROP CONSTRAINT sqllock_lock_pkey"}, []string{"the primary key of table sqllock_lock is not name"}, false},
		{"a wider primary key", []string{"ALTER TABLE sqllock_lock DROP CONSTRAINT sqllock_lock_pkey, ADD PRIMARY KEY (name, token)"}, []string{"the primary key of table sqllock_lock is not name"}, false},
		{"places with a narrower key", []string{"ALTER TABLE sqllock_permit DROP CONSTRAINT sqllock_permit_pkey, ADD PRIMARY KEY (name)"}, []string{"the primary key of table sqllock_permit is not name, token"}, false},
		{"a table that a crash empties", []string{"ALTER TABLE sqllock_lock SET UNLOGGED"}, []string{"table sqllock_lock is unlogged"}, false},
		{"a view", []string{"ALTER TABLE sqllock_lock RENAME TO other", "CREATE VIEW sqllock_lock AS SELECT * FROM other"}, []string{"table sqllock_lock is not an ordinary table"}, false},
		{"a column that each insertion must name", []string{"ALTER TABLE sqllock_lock ADD COLUMN tenant int NOT NULL"}, []string{"column sqllock_lock.tenant is integer not null, and must have a default or allow NULL"}, false},
	},
	schema.MySQL: {
		{"an int for a bigint", []string{"ALTER TABLE sqllock_lock MODIFY token INT NOT NULL"}, []string{"column sqllock_lock.token is int not null, and must be bigint not null"}, false},
		{"an unsigned bigint", []string{"ALTER TABLE sqllock_lock MODIFY token BIGINT UNSIGNED NOT NULL"}, []string{"column sqllock_lock.token is bigint unsigned not null"}, false},
		{"whole seconds", []string{"ALTER TABLE sqllock_lease MODIFY expires_at DATETIME NOT NULL"}, []string{"sqllock_lease.expires_at is datetime not null, and must be datetime(6) not null"}, false},
		{"a name with a collation", []string{"ALTER TABLE sqllock_lock MODIFY name VARCHAR(255) NOT NULL"}, []string{"column sqllock_lock.name is varchar(255) not null, and must be varbinary(1024) not null"}, false},
		{"a lock that cannot be free", []string{"ALTER TABLE sqllock_lock MODIFY lease_id BINARY(16) NOT NULL"}, []string{"column sqllock_lock.lease_id is binary(16) not null, and must be binary(16)"}, false},
		{"a missing default", []string{"ALTER TABLE sqllock_lock ALTER COLUMN metadata DROP DEFAULT"}, []string{"must be varbinary(1024) not null with a default"}, false},
		{"a missing primary key", []string{"ALTER TABLE sqllock_lock DROP PRIMARY KEY"}, []string{"the primary key of table sqllock_lock is not name"}, false},
		{"a wider primary key", []string{"ALTER TABLE sqllock_lock DROP PRIMARY KEY, ADD PRIMARY KEY (name, token)"}, []string{"the primary key of table sqllock_lock is not name"}, false},
		{"places with a narrower key", []string{"ALTER TABLE sqllock_permit DROP PRIMARY KEY, ADD PRIMARY KEY (name)"}, []string{"the primary key of table sqllock_permit is not name, token"}, false},
		{"a key of the beginnings of names", []string{"ALTER TABLE sqllock_lock DROP PRIMARY KEY, ADD PRIMARY KEY (name(100))"}, []string{"the primary key of table sqllock_lock is not name"}, false},
		{"a storage engine without transactions", []string{"ALTER TABLE sqllock_lease ENGINE=MyISAM"}, []string{"table sqllock_lease is stored by MyISAM, not by InnoDB"}, false},
		{"a view", []string{"ALTER TABLE sqllock_lock RENAME TO other", "CREATE VIEW sqllock_lock AS SELECT * FROM other"}, []string{"table sqllock_lock is not an ordinary table"}, false},
		{"a column that each insertion must name", []string{"ALTER TABLE sqllock_lock ADD COLUMN tenant INT NOT NULL"}, []string{"column sqllock_lock.tenant is int not null, and must have a default or allow NULL"}, false},
	},
	schema.SQLite: {
		{"a text for bytes", []string{"DROP TABLE sqllock_lease", "CREATE TABLE sqllock_lease (id TEXT NOT NULL PRIMARY KEY, expires_at TEXT NOT NULL)"}, []string{"column sqllock_lease.id is text not null, and must be blob not null", "column sqllock_lease.owner (text not null) is missing"}, false},
		{"a missing primary key", []string{"DROP TABLE sqllock_version", "CREATE TABLE sqllock_version (version INTEGER NOT NULL, lowest INTEGER NOT NULL)", "INSERT INTO sqllock_version VALUES (1, 1)"}, []string{"the primary key of table sqllock_version is not version"}, false},
		{"a view", []string{"ALTER TABLE sqllock_lock RENAME TO other", "CREATE VIEW sqllock_lock AS SELECT * FROM other"}, []string{"table sqllock_lock is not an ordinary table"}, false},
		{"a column that each insertion must name", []string{"DROP TABLE sqllock_version", "CREATE TABLE sqllock_version (version INTEGER NOT NULL PRIMARY KEY, lowest INTEGER NOT NULL, tenant TEXT NOT NULL)", "INSERT INTO sqllock_version VALUES (1, 1, '')"}, []string{"column sqllock_version.tenant is text not null, and must have a default or allow NULL"}, false},
	},
}

// commonDamages can happen in every dialect.
var commonDamages = []damage{
	{"a missing lease table", []string{"DROP TABLE sqllock_lease"}, []string{"table sqllock_lease is missing", runApply}, true},
	{"a missing version table", []string{"DROP TABLE sqllock_version"}, []string{"table sqllock_version is missing", runApply}, true},
	{"a missing column", []string{"ALTER TABLE sqllock_lock DROP COLUMN metadata"}, []string{"column sqllock_lock.metadata (", ") is missing", "never altered", "sqllock schema print"}, false},
	{"a missing column and a missing table", []string{"ALTER TABLE sqllock_lock DROP COLUMN metadata", "DROP TABLE sqllock_lease"}, []string{"column sqllock_lock.metadata", "table sqllock_lease is missing", ", then " + runApply}, false},
	{"an older version", []string{"DELETE FROM sqllock_version"}, []string{"the tables are version 0, this program needs version 1", runApply}, true},
	{"a newer version", []string{"INSERT INTO sqllock_version (version, lowest) VALUES (3, 2)"}, []string{"table sqllock_version says version 3, which takes a program that knows version 2, and this one knows version 1: upgrade this program"}, false},
}

func TestCheckSaysWhatDiffersAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		for _, damage := range append(damages[d], commonDamages...) {
			empty(t, db)
			apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
			exec(t, db.DB.DB, damage.do...)

			t.Logf("%s:", damage.name)
			err := schema.Check(t.Context(), db.DB.DB, d, schema.Tables{})
			wants(t, err, damage.says...)
			if !errors.Is(err, sqllock.ErrSchema) {
				t.Errorf("Check: %v, want ErrSchema", err)
			}
			t.Logf("  %v", err)

			err = schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{})
			if damage.mended {
				must(t, err)
				must(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}))
			} else {
				wants(t, err, damage.says...)
			}
		}
	})
}

// empty removes the tables, and the view and the table that a damage may have left.
func empty(t *testing.T, db *sqltest.Database) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), "DROP VIEW sqllock_lock"); err != nil {
		exec(t, db.DB.DB, "DROP TABLE IF EXISTS sqllock_lock") // it was not a view
	}
	for _, table := range []string{"other", "sqllock_lease", "sqllock_permit", "sqllock_version"} {
		exec(t, db.DB.DB, "DROP TABLE IF EXISTS "+table)
	}
}

func TestCheckOfAnEmptyDatabaseNamesEveryTableAndTheCommand(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		err := schema.Check(t.Context(), db.DB.DB, d, schema.Tables{})
		if !errors.Is(err, sqllock.ErrSchema) {
			t.Errorf("Check: %v, want ErrSchema", err)
		}
		wants(t, err, "table sqllock_lease is missing", "table sqllock_lock is missing", "table sqllock_version is missing", runApply)
		t.Log(err)

		wants(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{Prefix: "app_"}), "table app_lease is missing", "(with prefix app_)")
	})
}

func TestCheckDoesNotMindAdditions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
		exec(t, db.DB.DB,
			"ALTER TABLE sqllock_lock ADD COLUMN remark INT",
			"CREATE INDEX sqllock_lock_by_lease ON sqllock_lock (lease_id)",
			"ALTER TABLE sqllock_lock ADD COLUMN tenant INT NOT NULL DEFAULT 7")
		exec(t, db.DB.DB, map[schema.Dialect][]string{
			schema.Postgres: {
				"CREATE DOMAIN filled AS int DEFAULT 7",
				"ALTER TABLE sqllock_lock ADD COLUMN by_domain filled NOT NULL",
				"ALTER TABLE sqllock_lock ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY",
				"ALTER TABLE sqllock_lock ADD COLUMN twice bigint NOT NULL GENERATED ALWAYS AS (token * 2) STORED",
			},
			schema.MySQL: {
				"ALTER TABLE sqllock_lock ADD COLUMN number BIGINT NOT NULL AUTO_INCREMENT UNIQUE",
				"ALTER TABLE sqllock_lock ADD COLUMN changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
				"ALTER TABLE sqllock_lock ADD COLUMN twice BIGINT AS (token * 2) STORED",
			},
		}[d]...)
		must(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}))
	})
}

func TestCheckThatCannotAskIsNotASchemaError(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		closed := again(t, db, nil)
		must(t, closed.Close())
		err := schema.Check(t.Context(), closed, d, schema.Tables{})
		if err == nil || errors.Is(err, sqllock.ErrSchema) {
			t.Errorf("Check on a closed database: %v", err)
		}
	})
}

// A lease that a policy hides counts as dead, and its locks as free.
func TestCheckRefusesRowSecurityOfTheRole(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	apply(t.Context(), t, db.DB.DB, schema.Postgres, schema.Tables{})
	reader := db.User(t, "SELECT ON ALL TABLES IN SCHEMA public").DB.DB
	must(t, schema.Check(t.Context(), reader, schema.Postgres, schema.Tables{}))

	exec(t, db.DB.DB, "ALTER TABLE sqllock_lease ENABLE ROW LEVEL SECURITY")
	err := schema.Check(t.Context(), reader, schema.Postgres, schema.Tables{})
	wants(t, err, "table sqllock_lease is under row security for this role")
	if !errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("Check: %v, want ErrSchema", err)
	}
	must(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{})) // the owner sees every row
}
