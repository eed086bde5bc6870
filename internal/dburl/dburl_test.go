package dburl_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/dburl"
)

func TestAURLIsMisreadWhereItsPasswordIsNotEncoded(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"postgres://u:p@h/d":                false,
		"postgres://h:1,h:2/d?user=u":       false,
		"postgres://u:p%40%2F%3F%23@h":      false,
		"postgres://u:p/q@h/d":              true,
		"postgres://u:/p/q@h/d":             true,
		"postgresql://u:?p@h/d":             true,
		"POSTGRES://u:#p@h/d":               true,
		"postgres://u:p@q@h/d":              true,
		"postgres://u:p\n/q@h/d":            true,
		"mysql://u:p@q@h/d":                 false, // the last one counts there
		"mariadb://u:p/q@h/d":               true,
		"u:p/@:x@tcp(h:1)/d":                false, // no URL
		"host=h password='x://p/q@' user=u": false,
	} {
		if dburl.IsMisread(url) != want {
			t.Errorf("%q: want %v", url, want)
		}
	}
}
