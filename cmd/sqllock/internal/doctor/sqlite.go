package doctor

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

var sqliteChecks = []check{
	{"server", every, sqliteServer},
	{"file", lease, sqliteFile},
	{"journal", lease, sqliteJournal},
	{"tables", lease, tables},
	{"write", lease, write},
}

func sqliteServer(ctx context.Context, p *patient) (Finding, error) {
	var version string
	err := p.DB.GetContext(ctx, &version, "SELECT sqlite_version()")
	return fine("SQLite %s: it locks out the processes of this machine", version), err
}

func sqliteFile(ctx context.Context, p *patient) (Finding, error) {
	var file string
	if err := p.DB.GetContext(ctx, &file, "SELECT file FROM pragma_database_list WHERE name = 'main'"); err != nil {
		return Finding{}, err
	}
	mounts, _ := os.ReadFile("/proc/self/mounts") // exists on Linux only
	system := fileSystem(string(mounts), file)
	switch {
	case isNetwork(system):
		return bad("put it on a disk of this machine, or name a server",
			"%s is on a network file system (%s), where SQLite's own locks cannot be relied on", file, system), nil
	case isOfHost(system):
		return beware("use the file on one side only",
			"%s is on a file system (%s) that may be the host's: SQLite's locks do not reach from one side to the other", file, system), nil
	case isOpen(file, 0) && isReached(filepath.Dir(file)) || isOpen(filepath.Dir(file), fs.ModeSticky):
		return beware("chmod o-w the file and its folder; give them to a group of those who lock",
			"every user of this machine can write %s, or put another file in its place, and so take any lock", file), nil
	}
	return fine("%s", file), nil
}

// isOpen reports whether every user can write a file or a folder that has not this mode. Windows has no real permission bits.
func isOpen(name string, unless fs.FileMode) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 && info.Mode()&unless == 0
}

// isReached reports whether every user may open what is in a folder.
func isReached(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.Mode().Perm()&0o001 != 0
}

// fileSystem returns the type of the file system that a file is on.
func fileSystem(mounts, file string) (system string) {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(file) // as the table does
	longest := ""
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := strings.TrimSuffix(fields[1], "/") + "/"
		if strings.HasPrefix(escaped, point) && len(point) >= len(longest) { // a later mount hides earlier ones
			longest, system = point, fields[2]
		}
	}
	return system
}

func isNetwork(system string) bool {
	return slices.Contains([]string{
		"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "lustre", "beegfs", "gpfs",
		"fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.gcsfuse", "fuse.juicefs", "fuse.rclone",
	}, system)
}

// isOfHost reports whether a virtual machine or a container sees files of its host so.
func isOfHost(system string) bool {
	return slices.Contains([]string{"9p", "virtiofs", "fuse.grpcfuse"}, system)
}

func sqliteJournal(ctx context.Context, p *patient) (Finding, error) {
	var is struct {
		Mode    string `db:"journal_mode"`
		Timeout int    `db:"timeout"`
	}
	err := p.DB.GetContext(ctx, &is, "SELECT journal_mode, timeout FROM pragma_journal_mode, pragma_busy_timeout")
	if err != nil {
		return Finding{}, err
	}
	wait := time.Duration(is.Timeout) * time.Millisecond
	if is.Mode != "wal" {
		return beware("check whether the file system can do mmap, and PRAGMA journal_mode = WAL",
			"journal_mode is %s: who reads holds up who writes; busy_timeout is %v", is.Mode, wait), nil
	}
	return fine("journal_mode is %s, busy_timeout is %v", is.Mode, wait), nil
}
