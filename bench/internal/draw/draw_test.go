package draw_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/bench/internal/draw"
	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

func TestEachServerIsDrawn(t *testing.T) {
	t.Parallel()
	r := &result.Result{Servers: map[string]string{"PostgreSQL": "17", "Redis": "7", "etcd": "3"}}
	for _, k := range lock.Kinds() {
		if _, ok := r.Servers[string(k.Engine)]; !ok {
			continue
		}
		for _, s := range []result.Sample{
			{Scenario: "names", N: 1, Metric: "pairs_s", Value: 1000},
			{Scenario: "names", N: 256, Metric: "pairs_s", Value: 0},
			{Scenario: "latency", Metric: "pair_us", Value: 80},
			{Scenario: "fault/kill", Metric: "next_s", Value: 12},
			{Scenario: "fault/cut", Metric: "not_by_s", Value: 45},
		} {
			s.Kind = k.ID()
			r.Samples = append(r.Samples, s)
		}
	}
	folder := t.TempDir()
	if err := draw.All(r, folder); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"names-postgresql.svg": "sqllock/pg", "names-redis.svg": "concurrency.Mutex", "latency.svg": "golang-migrate", "fault.svg": "killed",
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, or it has not %q", file, err, want)
		}
	}
}
