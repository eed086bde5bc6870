//go:build unix

package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// startPooler starts a PgBouncer, and returns when it listens. The reaper ends it, like a server.
func startPooler(ctx context.Context, inst *instance, program, config, address string) error {
	acc, err := accountFor(postgresUser) // pgbouncer refuses to run as root
	if err != nil {
		return err
	}
	s := &process{inst: inst, account: acc}
	file := inst.file("pgbouncer.ini")
	err = errors.Join(
		acc.reaches(inst.dir),
		inst.write("signal", "TERM"), inst.write("pgbouncer.ini", config),
		os.Mkdir(inst.file("temp"), 0o700),
		acc.own(file), acc.own(inst.file("temp")),
	)
	if err != nil {
		return err
	}
	if s.cmd, err = s.launch([]string{program, file}); err != nil {
		return err
	}
	err = await(ctx, 5*time.Millisecond, func() (bool, error) {
		if strings.Contains(s.log(), "listening on "+address) { // who answers there may be another program
			return true, nil
		}
		return false, s.running(ctx)
	})
	switch {
	case err != nil && strings.Contains(s.log(), "Address already in use"):
		return errPortTaken
	case err != nil:
		return fmt.Errorf("%s does not listen: %w\n%s", program, err, s.log())
	}
	return nil
}
