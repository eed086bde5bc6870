package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkStart runs a command that does nothing under a lock on PostgreSQL. "ms" is how long that takes. "ms-more" is
// how much longer it takes than a program that connects, sends two statements and runs the command. "MB" is the peak
// memory of sqllock before its command runs. All are medians of 50 rounds, or of one with -short, whatever
// -benchtime is.
func BenchmarkStart(b *testing.B) {
	bare := filepath.Join(b.TempDir(), "bare")
	spend(b, "go", "build", "-o", bare, "./testdata/bare")
	var rounds int
	var db *sqltest.Database
	if testing.Short() { // measures nothing, so the shared server will do
		rounds, db = 1, sqltest.Postgres(b)
	} else {
		rounds, db = 50, sqltest.Start(b, sqltest.EnginePostgres, sqltest.Setting("fsync", "on"), sqltest.Setting("full_page_writes", "on")).Database(b)
	}
	b.Setenv("SQLLOCK_DB", db.DSN)
	spend(b, binary, "schema", "apply")
	for _, kind := range []string{kindLease, kindSession} {
		b.Run(kind, func(b *testing.B) {
			run := []string{"run", "--kind", kind, "start", "--"}
			var with, without []time.Duration
			for done := false; b.Loop(); done = true {
				for i := 0; i < rounds && !done; i++ { // alternating, so that other load of the machine affects both
					with = append(with, spend(b, binary, append(run, "true")...))
					without = append(without, spend(b, bare, "true"))
				}
			}
			b.ReportMetric(0, "ns/op") // not measured
			b.ReportMetric(milliseconds(median(with)), "ms")
			b.ReportMetric(milliseconds(median(with)-median(without)), "ms-more")
			if kilobytes := most(b, run); kilobytes > 0 {
				b.ReportMetric(kilobytes/1000, "MB")
			}
		})
	}
}

// spend runs a program and returns how long it takes.
func spend(b *testing.B, program string, args ...string) time.Duration {
	b.Helper()
	began := time.Now()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
	return time.Since(began)
}

// most returns the peak memory of sqllock, in kB, when its command reads it from Linux; elsewhere 0. The peak that
// Linux reports for an ended process includes the memory of the test process that started it.
func most(b *testing.B, run []string) float64 {
	b.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return 0
	}
	var all []float64
	for range 5 {
		out, err := exec.Command(binary, append(run, "sh", "-c", "grep VmHWM /proc/$PPID/status")...).Output()
		if err != nil {
			b.Fatal(err)
		}
		kilobytes, err := strconv.ParseFloat(strings.Fields(string(out))[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, kilobytes)
	}
	return median(all)
}

func median[T time.Duration | float64](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
