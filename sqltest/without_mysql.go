//go:build sqltest_no_mysql

package sqltest

func newMySQL(bool) product { return nil }
