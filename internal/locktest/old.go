package locktest

import (
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var oldPostgres = regexp.MustCompile(`^PostgreSQL 1[23]\.`)

// OldPostgres reports whether a server is PostgreSQL 12 or 13, which have no idle_session_timeout.
func OldPostgres(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return oldPostgres.MatchString(version)
}

// NeedSessionTimeout skips a test on a server that does not end a session because it is silent. A test whose proxy keeps
// the server's end of a connection open also needs that: TCP finds nothing dead there.
func NeedSessionTimeout(t *testing.T, db *sql.DB) {
	t.Helper()
	if OldPostgres(t, db) {
		t.Skip("PostgreSQL 12 and 13 have no idle_session_timeout")
	}
}

// On leaves out what PostgreSQL 12 and 13 do not have, if the server is one of them.
func (o Odd) On(t *testing.T, db *sql.DB) Odd {
	t.Helper()
	if !OldPostgres(t, db) {
		return o
	}
	return Odd{before14(o.Alone), before14(o.Together)}
}

func before14(settings []string) (kept []string) {
	for _, setting := range settings {
		parts := slices.DeleteFunc(strings.Split(setting, "&"), func(part string) bool {
			key, _, _ := strings.Cut(part, "=")
			return key == "idle_session_timeout" || key == "client_connection_check_interval"
		})
		if len(parts) > 0 {
			kept = append(kept, strings.Join(parts, "&"))
		}
	}
	return kept
}
