package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/sqllock/sqllock/internal/locktest"
)

// terminal opens a pseudo-terminal for a test. The test types by writing to the first file and reads what is shown from
// it; the second file is for the program.
func terminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = screen.Close() })
	must(t, screen.SetReadDeadline(time.Now().Add(patience)))
	var unlock, number int32
	control(t, screen, syscall.TIOCSPTLCK, &unlock)
	control(t, screen, syscall.TIOCGPTN, &number)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { _ = tty.Close() })
	return screen, tty
}

func control(t *testing.T, file *os.File, request uintptr, value *int32) {
	t.Helper()
	raw, err := file.SyscallConn()
	must(t, err)
	var errno syscall.Errno
	must(t, raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
	}))
	if errno != 0 {
		t.Fatal(errno)
	}
}

// onTerminal starts a program on this terminal, and returns a function that waits for a line to appear.
func onTerminal(t *testing.T, screen, tty *os.File, e env, args ...string) (*exec.Cmd, func(want string)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "TERM=dumb")
	for k, v := range e {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(t, cmd.Start())
	lines := bufio.NewReader(screen)
	return cmd, func(want string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for %q on the terminal: %v", want, err)
			}
			if strings.TrimSpace(line) == want {
				return
			}
		}
	}
}

func TestTheCommandReadsFromTheTerminal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), binary, "run", "x", "--", "sh", "-c", "echo ready; read line; echo got $line")
	shows("ready")
	_, err := screen.WriteString("typed\n")
	must(t, err)
	shows("got typed")
	must(t, cmd.Wait())
}

func TestKeysThatInterruptReachTheCommandOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), binary, "run", "x", "--", os.Args[0], "act", "7", "3")
	shows("ready")
	_, err := screen.WriteString("\x03")
	must(t, err)
	shows("^Cinterrupt")
	_, err = screen.WriteString("\x1c")
	must(t, err)
	shows("^\\quit") // and no second interrupt before it
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	shows("terminated")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v, want exit code 7", err)
	}
}

func TestALostLockEndsACommandOnATerminal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	screen, tty := terminal(t)
	// sqllock shares its group with the shell, which must not be killed.
	cmd, shows := onTerminal(t, screen, tty, on(t, db.url), "sh", "-c",
		`"$0" run --ttl 6s --kill-after 100ms x -- sh -c 'trap "" TERM; echo ready; read x'; echo code $?; exit 9`, binary)
	shows("ready")
	_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	shows("code 76")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("%v, want exit code 9", err)
	}
}

// The command's own input is a pipe. It reads keys from the terminal itself, as less and ssh do.
func TestTheCommandReadsKeysThoughItsInputIsAPipe(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), "sh", "-c",
		`echo text | "$0" run x -- sh -c 'cat; stty -echo </dev/tty; echo ready; read key </dev/tty; stty echo </dev/tty; echo got $key'`, binary)
	shows("text")
	shows("ready")
	_, err := screen.WriteString("typed\n")
	must(t, err)
	shows("got typed")
	must(t, cmd.Wait())
}

func TestACommandWithoutATerminalIsNotStoppedWhenItAsks(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), "sh", "-c",
		`"$0" run x -- sh -c 'read key </dev/tty || echo no terminal' </dev/null 2>/dev/null | cat`, binary)
	shows("no terminal")
	must(t, cmd.Wait())
}

func TestACommandIsStoppedByAKeyAndContinuedByItsShell(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), "sh", "-c",
		`set -m; "$0" run x -- sh -c 'echo ready; read line; echo got $line'; echo; echo stopped; fg; echo code $?`, binary)
	shows("ready")
	_, err := screen.WriteString("\x1a")
	must(t, err)
	shows("stopped")
	_, err = screen.WriteString("typed\n")
	must(t, err)
	shows("got typed")
	shows("code 0")
	must(t, cmd.Wait())
}

func TestACommandThatWasStoppedForTooLongIsEnded(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), "sh", "-c",
		`set -m; "$0" run --ttl `+tellingTTL+` x -- sh -c 'echo ready; read line; echo got $line'; echo; "$0" run x -- echo the next; fg; echo code $?`, binary)
	shows("ready")
	_, err := screen.WriteString("\x1a")
	must(t, err)
	shows("the next")
	shows("code 76")
	must(t, cmd.Wait())
}

func TestACommandRunsInTheBackgroundOfAShell(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	cmd, shows := onTerminal(t, screen, tty, on(t, sqliteFile(t).url), "sh", "-c",
		`set -m; "$0" run x -- sh -c 'echo behind; exit 5' & wait $!; echo code $?`, binary)
	shows("behind")
	shows("code 5")
	must(t, cmd.Wait())
}
