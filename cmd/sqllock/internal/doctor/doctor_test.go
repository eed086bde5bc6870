package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
)

func TestWhatAFailoverForgets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		standbys      int
		names, commit string
		level         doctor.Level
		says          string
	}{
		{0, "", "on", doctor.OK, "no standby"},
		{2, "", "on", doctor.Warn, "asynchronous, standbys: 2"},
		{1, "*", "local", doctor.Warn, "asynchronous"},
		{1, "", "off", doctor.Warn, "a crash forgets"},
		{2, "FIRST 1 (a, b)", "remote_apply", doctor.OK, "synchronous (FIRST 1 (a, b)"},
		{0, "a", "on", doctor.Fail, "every commit waits"},
		{0, "a", "local", doctor.OK, "no standby"},
	} {
		f := doctor.Replicated(test.standbys, test.names, test.commit)
		if f.Level != test.level || !strings.Contains(f.Text, test.says) {
			t.Errorf("%+v: %+v", test, f)
		}
	}
}

func TestWhatIsAdvisedOnSeveralHosts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		asksRole bool
		timeout  time.Duration
		level    doctor.Level
		advice   string
	}{
		{false, 7 * time.Second, doctor.Warn, "add target_session_attrs=read-write and connect_timeout=2 to the URL"},
		{false, 5 * time.Second, doctor.Warn, "add target_session_attrs=read-write to the URL"},
		{true, 7 * time.Second, doctor.Warn, "add connect_timeout=2 to the URL"},
		{true, 5 * time.Second, doctor.OK, ""},
	} {
		f, err := doctor.Hosts(t.Context(), test.asksRole, test.timeout)
		if err != nil || f.Level != test.level || !strings.HasPrefix(f.Advice, test.advice) || (f.Advice == "") != (test.advice == "") ||
			!strings.HasPrefix(f.Text, "one of a, b: ") {
			t.Errorf("%+v: %+v, %v", test, f, err)
		}
	}
}

func TestNetworkFileSystems(t *testing.T) {
	t.Parallel()
	const mounts = `/dev/sda1 / ext4 rw,relatime 0 0
proc /proc proc rw 0 0
server:/export /srv nfs4 rw 0 0
/dev/sdb1 /srv/local xfs rw 0 0
//server/share /mnt/a\040b cifs rw 0 0
none
/dev/sdc1 /over ext4 rw 0 0
user@host: /over fuse.sshfs rw 0 0
`
	for file, want := range map[string]string{
		"/var/lib/locks.db": "ext4", "/srv/locks.db": "nfs4", "/srv/local/locks.db": "xfs", "/srvx/locks.db": "ext4",
		"/mnt/a b/locks.db": "cifs", "/over/locks.db": "fuse.sshfs",
	} {
		if got := doctor.FileSystem(mounts, file); got != want {
			t.Errorf("%s is on %q, want %q", file, got, want)
		}
	}
	for system, want := range map[string]bool{
		"nfs4": true, "cifs": true, "beegfs": true, "gpfs": true, "fuse.sshfs": true, "fuse.juicefs": true,
		"9p": false, "virtiofs": false, "fuse.grpcfuse": false, "ext4": false, "": false, "overlay": false,
	} {
		if doctor.IsNetwork(system) != want {
			t.Errorf("%q is a network's: %v", system, !want)
		}
	}
}

func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]doctor.Finding{
		time.Hour:              {Level: doctor.Warn, Text: "1h0m0s ahead of"},
		-time.Hour:             {Level: doctor.Warn, Text: "1h0m0s behind"},
		100 * time.Millisecond: {Level: doctor.OK, Text: "ahead of"},
	} {
		f, err := doctor.Clock(t.Context(), ahead)
		if err != nil || f.Level != want.Level || !strings.Contains(f.Text, want.Text) {
			t.Errorf("%v: %+v, %v", ahead, f, err)
		}
	}
}

func TestFourFifthsAreMuch(t *testing.T) {
	t.Parallel()
	for used, want := range map[int]doctor.Level{0: doctor.OK, 79: doctor.OK, 80: doctor.Warn, 100: doctor.Warn} {
		if f := doctor.Use("connections", "max_connections", used, 100); f.Level != want {
			t.Errorf("%d of 100: %+v", used, f)
		}
	}
}
