//go:build sqltest_no_postgres

package sqltest

func newPostgres() product { return nil }
