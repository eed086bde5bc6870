package locktest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// StartBouncer starts a PgBouncer, with lines for its configuration, in front of the server of a
// PostgreSQL database and returns a DSN that goes through it. Without the program the test is skipped; with
// CI=true it fails.
func StartBouncer(t *testing.T, dsn, mode string, settings ...string) string {
	t.Helper()
	program := bouncerProgram(t)
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	database := strings.TrimPrefix(server.Path, "/")
	password, _ := server.User.Password()
	config := filepath.Join(t.TempDir(), "pgbouncer.ini")
	content := fmt.Sprintf(`[databases]
%s = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
%s
`, database, server.Hostname(), server.Port(), server.User.Username(), password, host, port, mode, strings.Join(settings, "\n"))
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
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close()
			return fmt.Sprintf("postgres://anybody@%s/%s?sslmode=disable", address, database)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("pgbouncer does not listen:", err)
		}
	}
}

func bouncerProgram(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Impossible(t, "pgbouncer is not installed")
	return ""
}
