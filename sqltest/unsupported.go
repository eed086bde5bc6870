//go:build !unix

package sqltest

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

const supported = false

var errUnsupported = errors.New("not supported on this system, use a server that runs already and name it by a DSN")

func checkOwner(string) error         { return errUnsupported }
func lockFile(string) (func(), error) { return nil, errUnsupported }
func runPID() int                     { return os.Getpid() }
func argsOf(int) string               { return "" }
func startPooler(context.Context, *instance, string, string, string) error {
	return errUnsupported
}
func detach(*exec.Cmd)                           {}
func awaitExit(context.Context, *exec.Cmd) error { return errUnsupported }

// process is a server that runs as a program on this machine.
type process struct{}

func newProcess(context.Context, product, programs, *instance, string, order) (*process, error) {
	return nil, errUnsupported
}

func (*process) start(context.Context) error            { return errUnsupported }
func (*process) running(context.Context) error          { return errUnsupported }
func (*process) stop(context.Context) error             { return errUnsupported }
func (*process) kill(context.Context) error             { return errUnsupported }
func (*process) pause(context.Context) error            { return errUnsupported }
func (*process) resume(context.Context) error           { return errUnsupported }
func (*process) inside(context.Context) (string, error) { return "", errUnsupported }
func (*process) address() string                        { return "" }
func (*process) log() string                            { return "" }

func (*process) preloadClock(context.Context, string, []byte) error { return errUnsupported }
func (*process) setClock(context.Context, []byte) error             { return errUnsupported }
