package server

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// process is a line of /proc/PID/stat.
type process struct {
	parent int
	spent  time.Duration // by itself, and by children that have ended
}

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // the name before it may have spaces
	fields := strings.Fields(rest)
	if !ok || len(fields) < 15 {
		return process{}, errors.New("/proc is not as expected")
	}
	var p process
	if p.parent, err = strconv.Atoi(fields[1]); err != nil {
		return process{}, err
	}
	for i, field := range fields[11:15] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, err
		}
		p.spent += time.Duration(n) * tick
		if i == 1 { // that was by itself: a process that has spent less than a tick shows nothing there
			p.spent = max(p.spent, exactly(pid))
		}
	}
	return p, nil
}

// exactly returns the time that the threads of a process have spent, without those that have ended.
func exactly(pid int) (total time.Duration) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // nothing if the kernel does not have it
	for _, name := range names {
		text, _ := os.ReadFile(name) //nolint:gosec // of the system
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		total += time.Duration(ns)
	}
	return total
}

// cpuOf returns the time that a process and its descendants have spent.
func cpuOf(root int) (total time.Duration, ok bool) {
	all := make(map[int]process)
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, false
	}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil { // it may have ended meanwhile
			all[pid] = p
		}
	}
	if _, ok = all[root]; !ok {
		return 0, false
	}
	for pid, p := range all {
		for up := pid; up != 0; up = all[up].parent {
			if up == root {
				total += p.spent
				break
			}
		}
	}
	return total, true
}

// sockets calls f for every TCP socket of this machine.
func sockets(f func(port int, state, inode string)) error {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 {
				continue
			}
			if _, hex, ok := strings.Cut(fields[1], ":"); ok {
				if port, err := strconv.ParseInt(hex, 16, 32); err == nil {
					f(int(port), fields[3], fields[9])
				}
			}
		}
		if err := errors.Join(lines.Err(), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// established counts the connections that clients have with a port.
func established(port int) (n int, err error) {
	err = sockets(func(p int, state, _ string) {
		if p == port && state == "01" {
			n++
		}
	})
	return n, err
}

// listener returns the process that listens on a port: the oldest, if several share the socket.
func listener(port int) (found int) {
	inode := ""
	if err := sockets(func(p int, state, i string) {
		if p == port && state == "0A" {
			inode = i
		}
	}); err != nil || inode == "" {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // without root's rights: of this user's processes
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != "socket:["+inode+"]" {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil && (found == 0 || pid < found) {
			found = pid
		}
	}
	return found
}
