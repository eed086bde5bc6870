//go:build unix

package sqltest

import (
	"context"
	"errors"
	"os"
)

func (s *process) preloadClock(ctx context.Context, library string, content []byte) error {
	file := s.inst.file("clock")
	if err := errors.Join(s.setClock(ctx, content), os.Chmod(library, 0o755), s.account.own(file)); err != nil { //nolint:gosec // the server, another user, loads it
		return err
	}
	s.env = []string{"LD_PRELOAD=" + library, "CLOCK_FILE=" + file}
	return nil
}

// setClock writes in place: the file is mapped.
func (s *process) setClock(_ context.Context, content []byte) error {
	f, err := os.OpenFile(s.inst.file("clock"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}
