package sqltest_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

// A migration that makes one of everything, and statements whose answers show all of it. Every answer must be the same in
// the migrated database and in a copy.
type everything struct {
	migration []string
	answers   []string
}

var everythingOn = map[sqltest.Engine]everything{
	sqltest.EnginePostgres: {
		migration: []string{
			"CREATE TYPE mood AS ENUM ('good', 'bad')",
			"CREATE TABLE a (id bigserial PRIMARY KEY, m mood NOT NULL DEFAULT 'good', twice bigint GENERATED ALWAYS AS (id * 2) STORED)",
			"CREATE TABLE b (a bigint REFERENCES a ON DELETE CASCADE, t timestamptz DEFAULT '2020-02-02', CHECK (a < 1000))",
			"INSERT INTO a (m) VALUES ('bad'), ('good')",
			"INSERT INTO b VALUES (1)",
			"CREATE VIEW v AS SELECT a.m, b.t FROM a JOIN b ON b.a = a.id",
			"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := 2; RETURN NEW; END $$",
			"CREATE TRIGGER t BEFORE INSERT ON b FOR EACH ROW EXECUTE FUNCTION f()",
			"CREATE SCHEMA extra CREATE TABLE c (n int)",
			"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, extra', current_database()); END $$",
			"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET application_name = %L', current_database(), 'it''s me'); END $$",
		},
		answers: []string{
			"INSERT INTO b VALUES (1) RETURNING a", "INSERT INTO a DEFAULT VALUES RETURNING id, m, twice",
			"SELECT * FROM v ORDER BY 1", "SELECT count(*) FROM c", "SHOW search_path", "SHOW application_name",
			"SELECT tgname FROM pg_trigger WHERE tgrelid = 'b'::regclass AND NOT tgisinternal",
		},
	},
	sqltest.EngineMySQL: {migration: mysqlEverything, answers: append(mysqlAnswers, "SHOW CREATE PROCEDURE add_one")},
	sqltest.EngineMariaDB: {
		migration: append(slices.Clone(mysqlEverything), "CREATE SEQUENCE s START WITH 7", "CREATE TABLE d (n int DEFAULT (NEXT VALUE FOR s), z int INVISIBLE DEFAULT 5)"),
		answers:   append(mysqlAnswers, "INSERT INTO d () VALUES () RETURNING n, z", "SHOW CREATE TABLE d"),
	},
	sqltest.EngineSQLite: {
		migration: []string{
			"CREATE TABLE a (id integer PRIMARY KEY AUTOINCREMENT, twice AS (id * 2))", "INSERT INTO a (id) VALUES (41)",
			"CREATE VIEW v AS SELECT id FROM a", "CREATE TABLE b (n)", "INSERT INTO b VALUES ('x')", "INSERT INTO b VALUES ('y')", "DELETE FROM b WHERE n = 'x'",
			"CREATE TRIGGER t AFTER INSERT ON a BEGIN INSERT INTO b VALUES (NEW.id); END",
		},
		answers: []string{"SELECT name, sql FROM sqlite_schema", "INSERT INTO a DEFAULT VALUES RETURNING id, twice", "SELECT rowid, n FROM b", "PRAGMA journal_mode"},
	},
}

var mysqlEverything = []string{
	"CREATE TABLE child (parent int NOT NULL, CONSTRAINT up FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)",
	"CREATE TABLE parent (id int AUTO_INCREMENT PRIMARY KEY, n int DEFAULT 7, word varchar(20) CHARACTER SET latin1, made timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), " +
		"twice int AS (n * 2) STORED, more int AS (n * 3), bits varbinary(4), f double, j json, KEY part (word(3)), KEY (twice), FULLTEXT KEY (word), CHECK (n < 1000)) AUTO_INCREMENT = 40 COMMENT 'it''s `mine`'",
	"CREATE TABLE `odd ``name` (d date, e enum('x','y') DEFAULT 'y') PARTITION BY RANGE (YEAR(d)) (PARTITION old VALUES LESS THAN (2000), PARTITION rest VALUES LESS THAN MAXVALUE)",
	"CREATE TABLE log (n int) ENGINE = MyISAM",
	"SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
	"INSERT INTO parent (id, word, bits, f, j) VALUES (0, 'naïve', x'00ff5c27', 0.1, '{\"a\": [1]}')",
	"INSERT INTO parent (word) VALUES (NULL)",
	"INSERT INTO `odd ``name` VALUES ('0000-00-00', 'x')",
	"INSERT INTO child VALUES (0)",
	"CREATE FUNCTION triple(n int) RETURNS int DETERMINISTIC RETURN n * 3",
	"CREATE VIEW z_view AS SELECT p.word, triple(p.id) AS three FROM parent p JOIN child c ON c.parent = p.id",
	"CREATE VIEW a_view AS SELECT * FROM z_view",
	"SET SESSION sql_mode = 'ANSI_QUOTES'",
	"CREATE PROCEDURE add_one(IN n int) BEGIN INSERT INTO log VALUES (n); SELECT \"n\" FROM log; END",
	"CREATE TRIGGER z_first BEFORE INSERT ON child FOR EACH ROW SET NEW.parent = 0",
	"CREATE TRIGGER a_second BEFORE INSERT ON child FOR EACH ROW INSERT INTO log VALUES (NEW.parent + 10)",
	"CREATE EVENT later ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DO DELETE FROM log",
	"SET SESSION time_zone = '+05:00'",
	"CREATE EVENT soon ON SCHEDULE AT '2037-01-01 00:00:00' DISABLE DO DELETE FROM log",
}

var mysqlAnswers = []string{
	"SHOW CREATE TABLE parent", "SHOW CREATE TABLE child", "SHOW CREATE TABLE log", "SHOW CREATE TABLE `odd ``name`", "SHOW CREATE VIEW a_view",
	"SHOW CREATE FUNCTION triple", "SELECT action_statement, definer, character_set_client, collation_connection FROM information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1", "SHOW CREATE EVENT later", "SHOW CREATE EVENT soon",
	"SELECT id, word, UNIX_TIMESTAMP(made), twice, more, HEX(bits), f, j FROM parent ORDER BY id", "SELECT * FROM a_view", "SELECT * FROM `odd ``name`",
	"INSERT INTO child VALUES (9)", "CALL add_one(7)", "SELECT * FROM child", "SELECT * FROM log",
	"SELECT event_name, time_zone, status, sql_mode FROM information_schema.events WHERE event_schema = DATABASE() ORDER BY 1",
	"SELECT trigger_name, action_order, sql_mode FROM information_schema.triggers WHERE trigger_schema = DATABASE() ORDER BY 1",
	"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1",
	"INSERT INTO parent (word) VALUES ('next')", "SELECT id FROM parent WHERE word = 'next'", "DELETE FROM parent WHERE id = 0", "SELECT count(*) FROM child",
}

func TestACopyHasEverything(t *testing.T) {
	t.Parallel()
	for engine, copyOf := range copies {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			migrate := func(ctx context.Context, db *sqltest.Database) error {
				if engine == sqltest.EngineMySQL || engine == sqltest.EngineMariaDB {
					if _, err := db.ExecContext(ctx, "ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"); err != nil {
						return err
					}
				}
				db.SetMaxOpenConns(1) // for SET
				for _, statement := range append([]string{"SELECT 1"}, withChecksOff(engine, everythingOn[engine].migration)...) {
					if _, err := db.ExecContext(ctx, statement); err != nil {
						return fmt.Errorf("%s: %w", statement, err)
					}
				}
				return nil
			}
			template := sqltest.Migrated(newKey(t), migrate)
			copied := copyOf(template, t)
			again := copyOf(template, t)

			migrated := engines[engine](t)
			if err := migrate(t.Context(), migrated); err != nil {
				t.Fatal(err)
			}
			want := answersOf(t, migrated, everythingOn[engine].answers)
			for _, db := range []*sqltest.Database{copied, again} {
				got := answersOf(t, db, everythingOn[engine].answers)
				for i, statement := range everythingOn[engine].answers {
					if got[i] != want[i] && !strings.Contains(statement, "UNIX_TIMESTAMP") {
						t.Errorf("%s:\n%s\nwant:\n%s", statement, got[i], want[i])
					}
				}
			}
		})
	}
}

// History cannot be copied.
func TestAMigrationWhoseResultCannotBeCopiedRunsForEveryTest(t *testing.T) {
	t.Parallel()
	runs := 0
	template := sqltest.Migrated(newKey(t), func(ctx context.Context, db *sqltest.Database) error {
		runs++
		_, err := db.ExecContext(ctx, "CREATE TABLE versioned (n int) WITH SYSTEM VERSIONING")
		return err
	})
	for range 3 {
		tb := newFakeTB(t.Name())
		db := opening(t, tb, template.MariaDB)
		if _, err := db.ExecContext(t.Context(), "INSERT INTO versioned VALUES (1)"); err != nil {
			t.Error(err)
		}
		tb.end()
		if !strings.Contains(tb.text(), "versioned") {
			t.Errorf("not explained: %q", tb.text())
		}
	}
	if runs != 4 {
		t.Errorf("the migration ran %d times, want 4", runs)
	}
}

// withChecksOff lets the first table refer to the second one.
func withChecksOff(engine sqltest.Engine, migration []string) []string {
	if engine == sqltest.EngineMySQL || engine == sqltest.EngineMariaDB {
		return append([]string{"SET SESSION foreign_key_checks = 0"}, migration...)
	}
	return migration
}

var names = regexp.MustCompile(`sqltest_[a-z0-9_]+`)

// answersOf runs the statements on a new connection, and returns what each has answered.
func answersOf(t *testing.T, db *sqltest.Database, statements []string) []string {
	t.Helper()
	fresh, err := sqlx.Open(db.DriverName(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fresh.Close() }()
	var answers []string
	for _, statement := range statements {
		rows, err := fresh.QueryxContext(t.Context(), statement)
		if err != nil {
			answers = append(answers, "error: "+err.Error())
			continue
		}
		var answer strings.Builder
		for rows.Next() {
			values, err := rows.SliceScan()
			if err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			for _, value := range values {
				if text, ok := value.([]byte); ok {
					value = string(text)
				}
				fmt.Fprintf(&answer, "%v | ", value)
			}
			answer.WriteString("\n")
		}
		if err := rows.Err(); err != nil {
			answer.WriteString("error: " + err.Error())
		}
		_ = rows.Close()
		answers = append(answers, names.ReplaceAllString(answer.String(), "DATABASE"))
	}
	return answers
}

// MySQL keeps the semicolon that ends such a statement in the middle of a text.
func TestAFunctionOfATextOfSeveralStatementsIsCopied(t *testing.T) {
	t.Parallel()
	template := sqltest.SQLFiles(fstest.MapFS{
		"1.sql": {Data: []byte("CREATE FUNCTION triple(n int) RETURNS int DETERMINISTIC RETURN 3 * n;\nCREATE TABLE goods (n int);")},
	})
	for _, engine := range []sqltest.Engine{sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			engines[engine](t) // skips if it is not there
			tb := newFakeTB(t.Name())
			tb.run(func() { copies[engine](template, tb) })
			tb.end()
			if log := strings.Join(tb.logs, "\n"); tb.fatal != "" || strings.Contains(log, "cannot be copied") {
				t.Errorf("%s%s", tb.fatal, log)
			}
		})
	}
}
