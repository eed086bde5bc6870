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

// CPU is the time that each process of a server has spent.
type CPU map[int]time.Duration

// Since returns the time that was spent since an earlier reading, by processes that have not ended.
func (c CPU) Since(before CPU) (total time.Duration) {
	for pid, spent := range c {
		total += max(0, spent-before[pid]) // the number may be that of another process now
	}
	return total
}

// process is a line of /proc/PID/stat.
type process struct {
	parent int
	spent  time.Duration
}

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // the name before it may have spaces
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return process{}, errors.New("/proc is not as expected")
	}
	parent, errParent := strconv.Atoi(fields[1])
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	p := process{parent, time.Duration(user+system) * tick}
	return p, errors.Join(errParent, errUser, errSystem)
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

// cpuOf returns the times of a process and its descendants.
func cpuOf(root int) CPU {
	all := make(map[int]process)
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is correct
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil { // it may have ended meanwhile
			all[pid] = p
		}
	}
	found := CPU{}
	for pid, p := range all {
		for up := pid; up != 0; up = all[up].parent {
			if up == root {
				found[pid] = max(p.spent, exactly(pid)) // what is less than a tick is in the latter only
				break
			}
		}
	}
	return found
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
