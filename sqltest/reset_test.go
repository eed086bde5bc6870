package sqltest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// On MySQL and MariaDB, a used database is made like new if the template allows it. The next test must not be able to tell.
func TestADatabaseThatATestHasUsedIsLikeNewForTheNext(t *testing.T) {
	t.Parallel()
	for _, engine := range []sqltest.Engine{sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			shop := sqltest.Migrated(newKey(t), func(ctx context.Context, db *sqltest.Database) error {
				for _, statement := range []string{
					"CREATE TABLE goods (id int AUTO_INCREMENT PRIMARY KEY, name varchar(20), KEY (name)) AUTO_INCREMENT = 100",
					"CREATE TABLE sold (id int AUTO_INCREMENT PRIMARY KEY, good int, FOREIGN KEY (good) REFERENCES goods (id))",
					"CREATE TABLE untouched (n int)",
					"INSERT INTO goods (name) VALUES ('tea'), ('milk')",
					"CREATE VIEW names AS SELECT name FROM goods",
				} {
					if _, err := db.ExecContext(ctx, statement); err != nil {
						return err
					}
				}
				return nil
			})
			holder := newFakeTB("holder")
			first := opening(t, holder, func(tb sqltest.TB, _ ...sqltest.Option) *sqltest.Database { return copies[engine](shop, tb) })
			t.Cleanup(holder.end)
			questions := []string{
				"SELECT * FROM goods ORDER BY id", "SELECT * FROM sold", "SELECT * FROM untouched", "SELECT * FROM names ORDER BY 1",
				"SHOW CREATE TABLE goods", "SHOW CREATE TABLE sold", "SHOW CREATE VIEW names", "SHOW CREATE DATABASE DATABASE()", "SHOW TABLES",
				"SHOW PROCEDURE STATUS WHERE db = DATABASE()", "SHOW TRIGGERS", "SHOW EVENTS",
			}
			want := answersOf(t, first, questions)

			for _, use := range [][]string{
				{},
				{"INSERT INTO goods (name) VALUES ('salt')", "INSERT INTO sold (good) VALUES (100)"},
				{"DELETE FROM goods"},
				{"UPDATE goods SET name = 'TEA' WHERE id = 100"},
				{"START TRANSACTION", "INSERT INTO sold (good) VALUES (100)", "ROLLBACK"},
				{"INSERT INTO sold (good) VALUES (101)", "DELETE FROM sold"},
				{"TRUNCATE TABLE untouched"},
				{"ALTER TABLE goods COMMENT = 'other'"},
				{"ALTER TABLE untouched ADD COLUMN m int"},
				{"CREATE INDEX more ON goods (id, name)"},
				{"DROP VIEW names"},
				{"CREATE TABLE more (n int)"},
				{"DROP TABLE untouched"},
				{"CREATE PROCEDURE p() SELECT 1"},
				{"CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DO DELETE FROM sold"},
				{"CREATE TRIGGER t BEFORE INSERT ON goods FOR EACH ROW SET NEW.name = 'x'"},
				{"ALTER DATABASE CHARACTER SET latin1"},
				{"RENAME TABLE untouched TO touched"},
			} {
				tb := newFakeTB("user")
				db := opening(t, tb, func(tb sqltest.TB, _ ...sqltest.Option) *sqltest.Database { return copies[engine](shop, tb) })
				if got := answersOf(t, db, questions); !slices.Equal(got, want) {
					t.Fatalf("before %q:\n%q\nwant:\n%q", use, got, want)
				}
				db.SetMaxOpenConns(1)
				for _, statement := range use {
					if _, err := db.ExecContext(t.Context(), statement); err != nil {
						t.Errorf("%s: %v", statement, err)
					}
				}
				tb.end()
				if logs := tb.text(); logs != "" {
					t.Error(logs)
				}
			}
			for range 8 { // every database that is ready
				tb := newFakeTB("last")
				db := opening(t, tb, func(tb sqltest.TB, _ ...sqltest.Option) *sqltest.Database { return copies[engine](shop, tb) })
				t.Cleanup(tb.end)
				if got := answersOf(t, db, questions); !slices.Equal(got, want) {
					t.Fatalf("%q\nwant:\n%q", got, want)
				}
			}
		})
	}
}
