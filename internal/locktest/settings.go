package locktest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
)

// settingsEnv makes each setting a test of its own, as in `make soak`. Otherwise most of them are tested together.
const settingsEnv = "SQLLOCK_TEST_SETTINGS"

// Odd has settings that must not affect locks: session settings and driver parameters, in the form of a DSN but not
// escaped. Several settings are joined by &.
type Odd struct {
	Alone    []string // each may change the meaning, the effect or the result of a statement
	Together []string // the others
}

// Join returns the settings of both.
func (o Odd) Join(other Odd) Odd {
	return Odd{slices.Concat(o.Alone, other.Alone), slices.Concat(o.Together, other.Together)}
}

// Each runs a test once for each setting, with a DSN that has it.
func (o Odd) Each(t *testing.T, dsn string, test func(t *testing.T, dsn, setting string)) {
	t.Helper()
	settings := slices.Concat(o.Alone, o.Together)
	if os.Getenv(settingsEnv) == "" {
		settings = slices.Concat(o.Alone, compatible(o.Together))
	}
	for _, setting := range settings {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			test(t, WithSetting(dsn, setting), setting)
		})
	}
}

// compatible combines settings into as few sets as possible. Settings of the same parameter go into different sets.
func compatible(settings []string) (sets []string) {
	var keys []map[string]bool
	for _, setting := range settings {
		mine := make(map[string]bool)
		for part := range strings.SplitSeq(setting, "&") {
			key, _, _ := strings.Cut(part, "=")
			mine[key] = true
		}
		fits := func(set map[string]bool) bool {
			for key := range mine {
				if set[key] {
					return false
				}
			}
			return true
		}
		i := slices.IndexFunc(keys, fits)
		if i < 0 {
			sets, keys = append(sets, setting), append(keys, mine)
			continue
		}
		sets[i] += "&" + setting
		for key := range mine {
			keys[i][key] = true
		}
	}
	return sets
}

// WithSetting adds a setting to a DSN.
func WithSetting(dsn, setting string) string {
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	parts := strings.Split(setting, "&")
	for i, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		parts[i] = key + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	}
	return dsn + separator + strings.Join(parts, "&")
}

// OddMySQL returns settings for MySQL and MariaDB, including every sql_mode flag that the server has.
func OddMySQL(t *testing.T, db *sql.DB) Odd {
	t.Helper()
	modes, isolation, mariaDB := modesOf(t, db)
	all := strings.Split(strings.Join(modes, ","), ",")
	slices.Sort(all)
	o := Odd{
		Alone: []string{
			"sql_mode='" + strings.Join(slices.Compact(all), ",") + "'", "columnsWithAlias=true", "autocommit=0", "completion_type=1",
			"completion_type=2", "sql_select_limit=0", "collation_connection=utf16_bin", "max_join_size=1&sql_big_selects=0",
			"clientFoundRows=true&interpolateParams=true&multiStatements=true", "wait_timeout=1&interactive_timeout=1",
		},
		Together: []string{
			"sql_mode=''", "sql_select_limit=1", "interpolateParams=true", "clientFoundRows=true",
			"multiStatements=true", "parseTime=true&loc=America/Caracas", "parseTime=false", "time_zone='+05:00'", "time_zone='-05:00'",
			"checkConnLiveness=false", "rejectReadOnly=true", "timeTruncate=1h", "connectionAttributes=program_name:mine",
			"charset=latin1", "charset=ascii", "charset=latin1&interpolateParams=true", "charset=gbk", "charset=utf8mb4&collation=utf8mb4_bin",
			"collation_connection=ucs2_bin", "collation_connection=latin1_german1_ci", "character_set_client=latin1",
			"innodb_lock_wait_timeout=1&lock_wait_timeout=1", "net_read_timeout=1&net_write_timeout=1",
			"sql_safe_updates=1", "sql_auto_is_null=1", "max_sort_length=64", "big_tables=1",
			"unique_checks=0&foreign_key_checks=0", "div_precision_increment=0", "group_concat_max_len=4", "low_priority_updates=1",
			"lc_time_names=de_DE", "readTimeout=3s&writeTimeout=3s",
		},
	}
	for _, mode := range modes {
		odd := "sql_mode='" + mode + "'"
		switch name := mode[strings.LastIndexByte(mode, ',')+1:]; name {
		case "SIMULTANEOUS_ASSIGNMENT", "EMPTY_STRING_IS_NULL", "ORACLE":
			o.Alone = append(o.Alone, odd)
		default:
			if os.Getenv(settingsEnv) != "" { // a set with all of them is tested in any case
				o.Together = append(o.Together, odd)
			}
		}
	}
	for _, level := range []string{"SERIALIZABLE", "REPEATABLE-READ", "READ-COMMITTED", "READ-UNCOMMITTED"} {
		o.Together = append(o.Together, isolation+"='"+level+"'")
	}
	if mariaDB {
		o.Together = append(o.Together, "max_statement_time=0.9", "idle_transaction_timeout=1", "in_predicate_conversion_threshold=2", "sql_if_exists=1")
	} else {
		o.Together = append(o.Together, "max_execution_time=900", "sql_require_primary_key=1", "explicit_defaults_for_timestamp=0")
	}
	return o
}

// modesOf returns the sql_mode flags of a server, each with the flags that it implies, and the name of the variable for
// the isolation level.
func modesOf(t *testing.T, db *sql.DB) (modes []string, isolation string, mariaDB bool) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }() // keep it out of the pool
	for bit := range 64 {
		if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("SET sql_mode = %d", uint64(1)<<bit)); err != nil {
			continue // there is no such flag
		}
		var mode string
		if err := conn.QueryRowContext(t.Context(), "SELECT @@sql_mode").Scan(&mode); err != nil {
			t.Fatal(err)
		}
		if mode != "" && mode != "NOT_USED" {
			modes = append(modes, mode)
		}
	}
	if len(modes) < 15 {
		t.Fatalf("the modes are %q", modes)
	}
	var version string
	if err := conn.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(version, "MariaDB") {
		return modes, "tx_isolation", true
	}
	return modes, "transaction_isolation", false
}

// OddPostgres returns settings for PostgreSQL with pgx. It does not combine the simple query protocol with
// standard_conforming_strings=off or a client_encoding other than UTF8, because pgx refuses that.
func OddPostgres() Odd {
	return Odd{
		Alone: []string{
			"default_query_exec_mode=simple_protocol&bytea_output=escape&DateStyle=SQL, DMY",
			"default_query_exec_mode=exec&bytea_output=escape&standard_conforming_strings=off&DateStyle=SQL, DMY",
			"default_transaction_isolation=serializable", "idle_session_timeout=2s", "lock_timeout=1", "statement_timeout=900",
		},
		Together: []string{
			"default_query_exec_mode=cache_describe", "default_query_exec_mode=describe_exec", "default_query_exec_mode=cache_statement",
			"default_query_exec_mode=exec&statement_cache_capacity=0", "default_query_exec_mode=simple_protocol",
			"default_transaction_isolation=repeatable read", "default_transaction_isolation=read uncommitted", "default_transaction_deferrable=on",
			"standard_conforming_strings=off", "backslash_quote=off", "bytea_output=escape", "array_nulls=off", "transform_null_equals=on",
			"quote_all_identifiers=on", "DateStyle=SQL, DMY", "IntervalStyle=sql_standard", "TimeZone=Asia/Karachi", "TimeZone=America/Bogota",
			"extra_float_digits=0", "client_min_messages=debug1", "idle_in_transaction_session_timeout=30s",
			"client_connection_check_interval=1", "application_name=mine", "target_session_attrs=read-write",
			"search_path=public, pg_catalog", "enable_seqscan=off&enable_indexscan=off&enable_bitmapscan=off",
			"plan_cache_mode=force_generic_plan", "plan_cache_mode=force_custom_plan", "jit=on", "work_mem=64",
			"row_security=off", "synchronous_commit=off", "log_statement=all", "deadlock_timeout=10",
			"options=-c timezone=Asia/Tokyo -c bytea_output=escape",
		},
	}
}

// UnderSettings tests session locks under odd settings, together with Lockers that have none.
func UnderSettings(t *testing.T, db Database, driverName string, odd Odd, list func(ctx context.Context, l SessionLocker) error) {
	t.Helper()
	odd.Each(t, db.DSN(t, Access{}), func(t *testing.T, dsn, setting string) {
		LeftWhole(t, db, dsn, setting)
		asEver(t, db, driverName, dsn, setting+": \x00\xff'\"\\%_`é☕", list)
	})
}

// asEver acquires a lock, and has other Lockers wait for it, inspect it and terminate its holder.
func asEver(t *testing.T, db Database, driverName, dsn, name string, list func(context.Context, SessionLocker) error) {
	t.Helper()
	pool, err := sql.Open(driverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	plain := open(t, db, Settings{})
	l, other := stubborn{open(t, db, Settings{DSN: dsn})}, stubborn{open(t, db, Settings{DB: pool})}
	ctx := bounded(t)

	lock := MustTry(t, l, name)
	MustBeHeld(t, plain, name)
	MustBeHeld(t, other, name)
	waiting := startWaiter(ctx, other, name)
	waiting.mustBlock(t)
	MustRelease(t, lock)
	lock = waiting.mustGet(t)
	MustBeHeld(t, plain, name)

	holder, err := again(ctx, func() (h sqllock.Holder, err error) { h, _, err = l.Inspect(ctx, name); return h, err })
	if session := db.Holder(t, name); err != nil || holder.Session != session || session == 0 {
		t.Errorf("the holder is %+v, %v; want session %d", holder, err, session)
	}
	if _, err := again(ctx, func() (any, error) { return nil, list(ctx, l.SessionLocker) }); err != nil {
		t.Errorf("List: %v", err)
	}
	ended, err := again(ctx, func() (ended bool, err error) { _, ended, err = l.Terminate(ctx, name); return ended, err })
	if err != nil || !ended {
		t.Errorf("Terminate: %t, %v", ended, err)
	}
	MustBeLost(t, lock)
	MustRelease(t, MustAcquire(t, l, name))

	names := []string{name + "1", name + "2", name + "3"}
	all, err := sqllock.AcquireAll(ctx, l, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		MustBeHeld(t, plain, name)
	}
	MustRelease(t, all)
}

// stubborn retries failed operations: on a busy machine, a time limit in the DSN can hit a session before it is set up.
type stubborn struct{ SessionLocker }

// TryAcquire implements sqllock.Locker.
func (s stubborn) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	return again(ctx, func() (sqllock.Lock, error) { return s.SessionLocker.TryAcquire(ctx, name, opts...) })
}

// Acquire implements sqllock.Locker.
func (s stubborn) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	return again(ctx, func() (sqllock.Lock, error) { return s.SessionLocker.Acquire(ctx, name, opts...) })
}

func again[T any](ctx context.Context, do func() (T, error)) (got T, err error) {
	for {
		if got, err = do(); err == nil || errors.Is(err, sqllock.ErrHeld) || ctx.Err() != nil {
			return got, err
		}
	}
}
