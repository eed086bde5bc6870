package process

import (
	"bytes"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithParent makes the kernel kill the child when sqllock is killed. The child's own children are not killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// onlyZombies reports whether all that is left of the group are processes that have ended. Where the first process
// of a container does not reap them, they stay. It is false if nothing is left, or nothing can be read.
func (g *group) onlyZombies() bool {
	id := strconv.Itoa(g.cmd.Process.Pid)
	if member, ended := stateOf(g.left, id); member && !ended {
		return false
	}
	for range 2 { // one that had ended when it was read may have started another one that the list did not have yet
		zombies := false
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, stat := range stats {
			member, ended := stateOf(stat, id)
			if member && !ended {
				g.left = stat // is read first the next time
				return false
			}
			zombies = zombies || member
		}
		if !zombies {
			return false
		}
	}
	return true
}

// stateOf reads from a file /proc/PID/stat whether a process is a member of a group, and whether it has ended, with all of
// its threads.
func stateOf(stat, group string) (member, ended bool) {
	text, _ := os.ReadFile(stat) //nolint:gosec // a file of the kernel; its process may be gone
	// The name, in parentheses, may have any characters.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const state, pgrp, threads = 0, 2, 17 // fields 3, 5 and 20 of proc_pid_stat(5)
	if len(fields) <= threads || fields[pgrp] != group {
		return false, false
	}
	return true, strings.Contains("ZX", fields[state]) && (fields[threads] == "0" || fields[threads] == "1")
}

// reapOrphans reaps, until the child has ended, the processes whose parent ended before them. The kernel makes them
// children of the first process of a container. It returns at once if that is not sqllock.
func (c *Child) reapOrphans() {
	if os.Getpid() != 1 {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, list := range lists {
			children, _ := os.ReadFile(list) //nolint:gosec // a file of the kernel; its thread may have ended
			for text := range strings.FieldsSeq(string(children)) {
				if pid, err := strconv.Atoi(text); err == nil && pid != c.cmd.Process.Pid {
					_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
				}
			}
		}
		select {
		case <-ended:
		case <-c.done:
			return
		}
	}
}
