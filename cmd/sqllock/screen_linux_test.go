package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/term"

	"github.com/sqllock/sqllock/internal/locktest"
)

// resize tells a terminal, and the programs on it, its size.
func resize(t *testing.T, tty *os.File, width, height uint16) {
	t.Helper()
	size := [4]uint16{height, width}
	control(t, tty, syscall.TIOCSWINSZ, (*int32)(unsafe.Pointer(&size)))
}

// reads returns a function that waits until a text appears after the previous one.
func reads(t *testing.T, screen *os.File) func(want string) {
	t.Helper()
	must(t, screen.SetReadDeadline(time.Now().Add(patience)))
	shown := ""
	return func(want string) {
		t.Helper()
		for piece := make([]byte, 4096); !strings.Contains(shown, want); {
			n, err := screen.Read(piece)
			if shown += string(piece[:n]); err != nil {
				t.Fatalf("waiting for %q after %q: %v", want, shown, err)
			}
		}
		shown = shown[strings.Index(shown, want)+len(want):]
	}
}

func TestTheLiveViewLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, end := range map[string]struct {
		key    string
		signal os.Signal
		code   int
	}{
		"q":       {key: "q"},
		"Ctrl-C":  {key: "\x03"},
		"SIGTERM": {signal: syscall.SIGTERM, code: 128 + 15},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqliteFile(t)
			e := on(t, db.url)
			p := held(t, e, "--ttl", "1h", "nightly")
			screen, tty := terminal(t)
			resize(t, tty, 80, 24)
			before, err := term.GetState(int(tty.Fd()))
			must(t, err)
			e["TERM"], e["NO_COLOR"] = "xterm", ""
			cmd, _ := onTerminal(t, screen, tty, e, binary, "watch", "--interval", "200ms")
			shows := reads(t, screen)
			shows(enterScreen)
			shows("\x1b[1;1H\x1b[1msqllock watch ")
			shows("1 held  q quits")
			shows("\x1b[3;1H\x1b[1mNAME     KIND   OWNER           HOST/PID")
			shows("nightly  lease  sqllock run sh  ")
			second := start(t, e, "run", "--ttl", "1h", "nightly", "--", "sh", "-c", "echo held; exec cat")
			shows("1 waited for") // only this part of the first line is redrawn
			shows("\x1b[33mnightly  lease")
			resize(t, tty, 40, 10)
			shows(clearScreen + "\x1b[1;1H")
			shows("…")
			p.letGo()
			second.expect("held")
			shows("released  nightly")
			db.expire(t, second)
			shows("\x1b[31mnightly  lease")
			shows("expired")
			must(t, cmd.Process.Signal(syscall.SIGTSTP))
			shows(leaveScreen)
			var status syscall.WaitStatus
			if _, err = syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
				t.Fatalf("it was not stopped: %v", err)
			}
			must(t, cmd.Process.Signal(syscall.SIGCONT))
			shows(enterScreen + clearScreen + "\x1b[1;1H")
			if end.key != "" {
				_, err = screen.WriteString(end.key)
			} else {
				err = cmd.Process.Signal(end.signal)
			}
			must(t, err)
			shows(leaveScreen)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != end.code {
				t.Errorf("exit code %d, want %d", code, end.code)
			}
			after, err := term.GetState(int(tty.Fd()))
			must(t, err)
			if *after != *before {
				t.Errorf("the terminal is %+v, and was %+v", after, before)
			}
		})
	}
}

func TestTheLiveViewOnATerminalThatDoesNotKnowItsSize(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	screen, tty := terminal(t)
	resize(t, tty, 0, 0)
	e := on(t, sqliteFile(t).url)
	e["TERM"] = "xterm"
	cmd, _ := onTerminal(t, screen, tty, e, binary, "watch")
	shows := reads(t, screen)
	shows("q quits")
	_, err := screen.WriteString("q")
	must(t, err)
	shows(leaveScreen)
	must(t, cmd.Wait())
}
