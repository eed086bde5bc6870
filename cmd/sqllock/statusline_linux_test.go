package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sqllock/sqllock/internal/locktest"
)

// shownUntil reads the screen until this text appears, and returns all of it.
func shownUntil(t *testing.T, screen *os.File, want string) string {
	t.Helper()
	must(t, screen.SetReadDeadline(time.Now().Add(patience)))
	var all strings.Builder
	for buffer := make([]byte, 4096); !strings.Contains(all.String(), want); {
		n, err := screen.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			t.Fatalf("waiting for %q on the terminal: %v; it shows %q", want, err, all.String())
		}
	}
	return all.String()
}

func TestAWaitOnATerminalIsShownAndErased(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	show := func(t *testing.T, db testPlace, kind, last string) {
		t.Helper()
		e := on(t, db.url)
		e["TERM"] = "xterm"
		holder := held(t, e, "--kind", kind, "busy")
		screen, tty := terminal(t)
		cmd, _ := onTerminal(t, screen, tty, e, binary, "run", "--kind", kind, "busy", "--", "echo", "ran")
		shownUntil(t, screen, "waiting for busy: ")
		shownUntil(t, screen, last)
		shownUntil(t, screen, "waiting for busy: ") // one second later
		holder.letGo()
		text := shownUntil(t, screen, "ran")
		if !strings.HasSuffix(strings.TrimSuffix(text, "\r\n"), eraseLine+"ran") {
			t.Errorf("the line is not erased: %q", text)
		}
		must(t, cmd.Wait())
	}
	onEach(t, func(t *testing.T, db testPlace) {
		show(t, db, kindLease, " left")
		if db.Engine != "sqlite" {
			show(t, db, kindSession, "/")
		}
	})
}

func TestAWaitInTheBackgroundIsNotShown(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := on(t, sqliteFile(t).url)
	e["TERM"] = "xterm"
	holder := held(t, e, "busy")
	screen, tty := terminal(t)
	cmd, _ := onTerminal(t, screen, tty, e, "sh", "-c", `set -m; "$0" run --wait `+vainly+` busy -- true & wait $!; echo code $?`, binary)
	if text := shownUntil(t, screen, "code 75"); strings.Contains(text, "waiting for") {
		t.Errorf("it shows %q", text)
	}
	must(t, cmd.Wait())
	holder.letGo()
}

func TestAWaitIsNotShownAmongJSON(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	e := on(t, db.url)
	holder := held(t, e, "busy")
	screen, tty := terminal(t)
	cmd, _ := onTerminal(t, screen, tty, e, binary, "run", "-v", "--log-format", "json", "--wait", vainly, "busy", "--", "true")
	text := shownUntil(t, screen, `"exit_code":75}`)
	logged(t, strings.TrimSpace(strings.ReplaceAll(text, "\r", "")))
	if cmd.Wait() == nil {
		t.Error("the exit code is 0")
	}
	holder.letGo()
}

func TestBenchShowsHowFarItIsOnATerminal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := on(t, sqliteFile(t).url)
	e["TERM"] = "xterm"
	screen, tty := terminal(t)
	cmd, _ := onTerminal(t, screen, tty, e, binary, "bench", "--duration", "20ms")
	text := shownUntil(t, screen, "bare writes.")
	must(t, cmd.Wait())
	before, after, _ := strings.Cut(text, "SQLite ")
	if !strings.Contains(before, "1 of 6  round trip") || !strings.HasSuffix(before, eraseLine) || strings.Contains(after, "\x1b") {
		t.Errorf("it shows %q", text)
	}
}

func TestATerminalThatTakesNoOutputDelaysNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := on(t, sqliteFile(t).url)
	e["TERM"] = "xterm"
	holder := held(t, e, "busy")
	screen, tty := terminal(t)
	ran := filepath.Join(t.TempDir(), "ran")
	cmd, _ := onTerminal(t, screen, tty, e, binary, "run", "-v", "busy", "--", "touch", ran)
	shownUntil(t, screen, "waiting for busy: ")
	flow(t, tty, unix.TCOOFF) // as Ctrl-S does
	holder.letGo()
	exists(t, ran)
	call(t, e, 0, nil, "run", "busy", "--", "true")
	flow(t, tty, unix.TCOON)
	shownUntil(t, screen, "lock released")
	must(t, cmd.Wait())
}

// flow stops or restarts the output of a terminal.
func flow(t *testing.T, tty *os.File, action int) {
	t.Helper()
	raw, err := tty.SyscallConn()
	must(t, err)
	var failed error
	must(t, raw.Control(func(fd uintptr) { failed = unix.IoctlSetInt(int(fd), unix.TCXONC, action) }))
	must(t, failed)
}

// exists waits for a file.
func exists(t *testing.T, file string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !locktest.Poll(ctx, func() bool { _, err := os.Stat(file); return err == nil }) {
		t.Fatal("the command has not run")
	}
}

func TestAPipeThatNobodyReadsDelaysNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := on(t, sqliteFile(t).url)
	reader, writer, err := os.Pipe()
	must(t, err)
	defer func() { _ = reader.Close() }()
	must(t, writer.SetWriteDeadline(time.Now().Add(time.Second)))
	_, err = writer.Write(make([]byte, 1<<20)) // fills it
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v, want a pipe that is full", err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	cmd := exec.CommandContext(t.Context(), binary, "run", "-v", "x", "--", "touch", ran)
	cmd.Env = append(os.Environ(), "SQLLOCK_DB="+e["SQLLOCK_DB"])
	cmd.Stderr = writer
	must(t, cmd.Start())
	must(t, writer.Close())
	exists(t, ran)
	call(t, e, 0, nil, "run", "x", "--", "true")
	text, err := io.ReadAll(reader)
	must(t, err)
	must(t, cmd.Wait())
	contains(t, string(text), "lock acquired", "command ended", "lock released")
}
