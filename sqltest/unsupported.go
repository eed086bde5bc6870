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

func newProcess(context.Context, product, programs, *instance, string, order) (host, error) {
	return nil, errUnsupported
}
