package pg_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// In transaction mode two clients hold the same lock. In session mode they do not, but nothing
// tells the modes apart, and the lock outlives a client whose session the pooler keeps.
func TestAPoolerInBetweenIsRefused(t *testing.T) {
	t.Parallel()
	program := bouncerProgram(t)
	for _, mode := range []string{"transaction", "session", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			dsn := startBouncer(t, program, db, mode)
			mustRefuse(t, closing(t)(pg.New(dsn)), "pooler")
			if n := locksOn(t, db); n != 0 {
				t.Errorf("%d locks are held after a refusal", n)
			}
		})
	}
}

func bouncerProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("pgbouncer is not installed")
	}
	t.Skip("pgbouncer is not installed")
	return ""
}

// startBouncer starts a PgBouncer, with lines for its configuration, in front of db's server and
// returns a DSN that goes through it.
func startBouncer(t *testing.T, program string, db *sqltest.Database, mode string, settings ...string) string {
	t.Helper()
	server, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	config := filepath.Join(t.TempDir(), "pgbouncer.ini")
	content := fmt.Sprintf(`[databases]
%s = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
%s
`, server.Database, server.Host, server.Port, server.User, server.Password, host, port, mode, strings.Join(settings, "\n"))
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{config}
	if os.Geteuid() == 0 { // which it refuses to run as
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pgbouncer says:\n%s", log.String())
		}
	})
	eventually(t, "pgbouncer listens", func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return fmt.Sprintf("postgres://anybody@%s/%s?sslmode=disable", address, server.Database)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
