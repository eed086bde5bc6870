package locktest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// StartPgpool starts a pgpool-II with this backend_clustering_mode in front of the server of a PostgreSQL database, and
// returns a DSN that goes through it. If the program is missing, the test is skipped; with CI=true it fails.
func StartPgpool(t *testing.T, dsn, mode string) string {
	t.Helper()
	program := findProgram(t, "pgpool")
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	through := *server
	for through.Host = freeAddress(t); !pools(t, program, server, mode, through.Host); {
		through.Host = freeAddress(t)
	}
	return through.String()
}

// pools starts a pgpool-II, as starts does.
func pools(t *testing.T, program string, server *url.URL, mode, address string) bool {
	t.Helper()
	_, port, _ := net.SplitHostPort(address)
	_, controlPort, _ := net.SplitHostPort(freeAddress(t))
	password, _ := server.User.Password()
	folder, err := os.MkdirTemp("", "pgpool") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) }) // an error would leave only a temporary folder
	var config strings.Builder
	for _, setting := range [][2]string{
		{"backend_clustering_mode", mode},
		{"listen_addresses", "127.0.0.1"},
		{"port", port},
		{"pcp_listen_addresses", "127.0.0.1"},
		{"pcp_port", controlPort},
		{"socket_dir", folder},
		{"pcp_socket_dir", folder},
		{"wd_ipc_socket_dir", folder},
		{"logdir", folder},
		{"pid_file_name", filepath.Join(folder, "pid")},
		{"backend_hostname0", server.Hostname()},
		{"backend_port0", server.Port()},
		{"backend_flag0", "DISALLOW_TO_FAILOVER"},
		{"allow_clear_text_frontend_auth", "on"}, // pgpool has no passwords of its own
		{"sr_check_user", server.User.Username()},
		{"sr_check_password", password},
		{"num_init_children", "40"},
		{"max_pool", "1"},
		{"memqcache_total_size", "1MB"},
	} {
		fmt.Fprintf(&config, "%s = '%s'\n", setting[0], setting[1])
	}
	files := map[string]string{"pgpool.conf": config.String(), "pcp.conf": "", "pool_hba.conf": "", "pool_passwd": "", "key": ""}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	cmd := exec.CommandContext(t.Context(), program, "-n", "-D", "-f", in("pgpool.conf"), "-F", in("pcp.conf"), "-a", in("pool_hba.conf"), "-k", in("key"))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // ends at once, with its children
	cmd.WaitDelay = soon                                                    // if it does not, it is killed
	return starts(t, cmd, folder, syscall.SIGINT, "successfully started")
}
