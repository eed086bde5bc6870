package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/ory/dockertest/v3"
	dc "github.com/ory/dockertest/v3/docker"
)

// Log returns what the server has logged since the test got this database, also about other tests. It returns an error on
// SQLite and for a server that is named by a DSN: this package does not know where they log.
func (db *Database) Log() (string, error) {
	if db.log == nil {
		return "", errors.New("sqltest: the log of this server is not known")
	}
	return db.log()
}

// logAfter returns a function for the part of the server's log that is written from now on. It returns nil if sqltest did not
// start the server: its log is not known.
func (i *instance) logAfter() func() (string, error) {
	if i == nil {
		return nil
	}
	begin := time.Now()
	var size int64
	if info, err := os.Stat(i.file("log")); err == nil {
		size = info.Size()
	}
	return func() (string, error) {
		name, err := os.ReadFile(i.file("container"))
		if errors.Is(err, os.ErrNotExist) {
			log, err := os.ReadFile(i.file("log"))
			return string(log[min(int(size), len(log)):]), err
		}
		if err != nil {
			return "", err
		}
		return i.containerLog(string(name), begin)
	}
}

// containerLog returns what a container has logged.
func (i *instance) containerLog(name string, since time.Time) (string, error) {
	endpoint, err := os.ReadFile(i.file("docker-host"))
	if err != nil {
		return "", err
	}
	pool, err := dockertest.NewPool(string(endpoint))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	var out bytes.Buffer
	err = pool.Client.Logs(dc.LogsOptions{
		Context: ctx, Container: name, OutputStream: &out, ErrorStream: &out, Stdout: true, Stderr: true, Since: since.Unix(),
	})
	return out.String(), err
}

// loggedLines is how many lines of the server's log the log of a failed test gets.
const loggedLines = 20

// statementsOn and waitsOn describe what goes on in a database: the statements, and the sessions that wait for a lock.
var (
	statementsOn = map[Engine]string{
		EnginePostgres: `
			SELECT format('backend %s, %s since %s: %s', pid, state, date_trunc('milliseconds', clock_timestamp() - state_change), left(query, 500))
			FROM pg_stat_activity WHERE datname = '?' AND state <> 'idle' AND pid <> pg_backend_pid() ORDER BY pid`,
		EngineMySQL: `
			SELECT CONCAT('connection ', id, ', ', command, ' since ', time, ' s: ', COALESCE(LEFT(info, 500), ''))
			FROM performance_schema.processlist WHERE db = '?' AND command <> 'Sleep' ORDER BY id`,
		EngineMariaDB: `
			SELECT CONCAT('connection ', id, ', ', command, ' since ', time, ' s: ', COALESCE(LEFT(info, 500), ''))
			FROM information_schema.processlist WHERE db = '?' AND command <> 'Sleep' ORDER BY id`,
	}
	waitsOn = map[Engine]string{
		EnginePostgres: `
			SELECT format('backend %s waits for backend %s, which is %s: %s', w.pid, b.pid, b.state, left(b.query, 500))
			FROM pg_stat_activity w, unnest(pg_blocking_pids(w.pid)) blocker JOIN pg_stat_activity b ON b.pid = blocker
			WHERE w.datname = '?' ORDER BY w.pid`,
		EngineMySQL: `
			SELECT CONCAT('connection ', waiting_pid, ' waits for connection ', blocking_pid, ' and a row of ', locked_table, ': ', COALESCE(blocking_query, 'in a transaction'))
			FROM sys.innodb_lock_waits WHERE locked_table_schema = '?'
			UNION ALL
			SELECT CONCAT('connection ', waiting_pid, ' waits for connection ', blocking_pid, ' and the table ', object_name)
			FROM sys.schema_table_lock_waits WHERE object_schema = '?' AND waiting_pid <> blocking_pid`,
		EngineMariaDB: `
			SELECT CONCAT('connection ', w.trx_mysql_thread_id, ' waits for connection ', b.trx_mysql_thread_id, ': ', COALESCE(b.trx_query, 'in a transaction'))
			FROM information_schema.innodb_lock_waits l
			JOIN information_schema.innodb_trx w ON w.trx_id = l.requesting_trx_id
			JOIN information_schema.innodb_trx b ON b.trx_id = l.blocking_trx_id
			JOIN information_schema.processlist p ON p.id = w.trx_mysql_thread_id WHERE p.db = '?'`,
	}
)

// explain logs what goes on in the database of a failed test: its statements, which session waits for which, and what the server
// has logged.
func (s server) explain(tb TB, db *Database, name string) {
	tb.Helper()
	var seen []string
	add := func(title, text string, err error) {
		if err != nil {
			text = "cannot be read: " + redact(s.product, s.record.DSN, err.Error())
		}
		if text != "" {
			seen = append(seen, title+":\n    "+strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	err := s.administer(func(ctx context.Context, admin *sql.DB) error {
		for _, what := range []struct {
			title string
			query map[Engine]string
		}{{"statements", statementsOn}, {"waits for locks", waitsOn}} {
			lines, err := namesOf(ctx, admin, strings.ReplaceAll(what.query[s.product.engine()], "?", name))
			add(what.title, strings.Join(lines, "\n"), err)
		}
		return nil
	})
	if err != nil {
		add("statements", "", err)
	}
	if db.log != nil {
		log, err := db.log()
		lines := strings.Split(strings.TrimSpace(log), "\n")
		add("the server's log meanwhile", strings.Join(lines[max(0, len(lines)-loggedLines):], "\n"), err)
	}
	if len(seen) > 0 {
		tb.Logf("sqltest: %s has failed with this on %s:\n  %s", tb.Name(), s, strings.Join(seen, "\n  "))
	}
}
