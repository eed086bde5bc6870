//go:build sqltest_no_sqlite

package sqltest

func sqliteFile(tb TB, _ *Template, _ []Option) *Database {
	tb.Helper()
	tb.Fatalf("sqltest: %v", withoutError(EngineSQLite))
	return nil
}
