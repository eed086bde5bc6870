//go:build unix

package sqltest

import (
	"context"
	"path/filepath"
)

func (s *process) inside(context.Context) (string, error) { return s.address(), nil }

// copyOf returns the command that fills the data folder of a standby.
func (s *process) copyOf(p *primary) []string {
	return []string{
		filepath.Join(s.programs.dir, "pg_basebackup"), "-D", s.folder().data, "-R", "-X", "stream", "-c", "fast",
		"-h", p.host, "-p", p.port, "-U", "postgres", "-w",
	}
}
