package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/bench/internal/result"
)

// machine describes this machine, with the disk of a folder.
func machine(folder string) (result.Machine, error) {
	sync, err := syncTime(folder)
	m := result.Machine{
		CPU:    field("/proc/cpuinfo", "model name"),
		Cores:  runtime.NumCPU(),
		Memory: memory(),
		System: strings.Trim(strings.TrimPrefix(line("/etc/os-release"), "PRETTY_NAME="), `"`) + ", Linux " + line("/proc/sys/kernel/osrelease"),
		Go:     runtime.Version(),
		Sync:   sync,
	}
	m.Load, _, _ = strings.Cut(line("/proc/loadavg"), " ")
	return m, err
}

// memory returns the size of the memory.
func memory() string {
	kB, err := strconv.ParseFloat(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 64)
	if err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GB", kB/(1<<20))
}

// line returns the first line of a file, or nothing.
func line(name string) string {
	text, _ := os.ReadFile(name) //nolint:gosec // of the system
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}

// field returns a field of a file of fields, or nothing.
func field(name, field string) string {
	text, _ := os.ReadFile(name) //nolint:gosec // of the system
	for l := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(key) == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// syncTime returns the median time, in microseconds, of a write of 8 kB that is synced to the disk.
func syncTime(folder string) (us float64, err error) {
	f, err := os.CreateTemp(folder, ".sync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var times []float64
	for range 50 {
		began := time.Now()
		if _, err := f.WriteAt(make([]byte, 8192), 0); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(began).Nanoseconds())/1e3)
	}
	slices.Sort(times)
	return result.Percentile(times, 50), nil
}

// versions returns the versions of the libraries that are compared.
func versions() map[string]string {
	shown := []string{
		"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "github.com/pressly/goose/v3", "github.com/golang-migrate/migrate/v4",
		"github.com/bsm/redislock", "github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9", "go.etcd.io/etcd/client/v3",
	}
	all := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, m := range info.Deps {
		if slices.Contains(shown, m.Path) {
			all[m.Path] = m.Version
		}
	}
	return all
}
