package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/otellock/demo/internal/dashboard"
	"github.com/sqllock/sqllock/otellock/demo/internal/workload"
)

// files is the folder of the dashboard and the rules.
const files = "../../.."

func TestEachPanelHasAPlaceAndAQuery(t *testing.T) {
	t.Parallel()
	panels, err := dashboard.Read(filepath.Join(files, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	type cell struct{ x, y int }
	taken := make(map[cell]string)
	for _, p := range panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := cell{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" || at.x >= 24 {
					t.Fatalf("%q has the place of %q, or none", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
		if p.Title == "" || len(p.Targets) == 0 || p.GridPos.W*p.GridPos.H == 0 {
			t.Errorf("the panel %+v is empty", p)
		}
		for _, target := range p.Targets {
			if target.LegendFormat == "" || !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("%q has a query without a legend, or for all instances: %s", p.Title, target.Expr)
			}
			if strings.Contains(target.Query(), "$") {
				t.Errorf("a variable has no value: %s", target.Query())
			}
		}
	}
	if len(panels) < 8 {
		t.Errorf("there are %d panels", len(panels))
	}
}

// name matches a metric, or a label of one.
var name = regexp.MustCompile(`\bsqllock_[a-z_]+\b|\berror_type\b`)

func TestTheMetricsOfTheDashboardAndTheAlertsExist(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := workload.Open(ctx, filepath.Join(t.TempDir(), "locks.db"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w)
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx, func(string) {}) }()
	t.Cleanup(func() {
		server.Close()
		cancel()
		<-done
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})

	used := ""
	for _, file := range []string{"dashboard.json", "alerts.yml"} {
		text, err := os.ReadFile(filepath.Join(files, file))
		if err != nil {
			t.Fatal(err)
		}
		used += string(text)
	}
	deadline := time.After(time.Minute)
	for {
		var missing []string
		metrics := get(t, server.URL+"/web-1/metrics") + get(t, server.URL+"/web-2/metrics")
		for _, used := range name.FindAllString(used, -1) {
			if !regexp.MustCompile(`\b` + used + `\b`).MatchString(metrics) {
				missing = append(missing, used)
			}
		}
		if len(missing) == 0 {
			return
		}
		select {
		case <-time.After(500 * time.Millisecond): // the first renewal comes after 5 s
		case <-deadline:
			t.Fatalf("no metric or label is called %v", missing)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alerts_test.yml has series for which each alert fires, and series for which none does.
func TestTheAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	needPromtool(t)
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
}

func TestThePanelOfLostLocksShowsNoneAfterAFailedScrapeOrARestart(t *testing.T) {
	t.Parallel()
	needPromtool(t)
	panels, err := dashboard.Read(filepath.Join(files, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(panels, func(p dashboard.Panel) bool { return p.Title == "Locks lost" })
	if i < 0 {
		t.Fatal("there is no such panel")
	}
	file := filepath.Join(t.TempDir(), "panel_test.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, `
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - {series: 'up{instance="failed"}', values: 1x19 0 1x20}
      - {series: 'sqllock_lost_total{instance="failed", error_type="lost"}', values: 7x19 stale 7x20}
      - {series: 'up{instance="restarted"}', values: 1x40}
      - {series: 'sqllock_lost_total{instance="restarted", error_type="lost"}', values: 7x10 stale _x10 2x20}
      - {series: 'up{instance="without a gap"}', values: 1x40}
      - {series: 'sqllock_lost_total{instance="without a gap", error_type="lost"}', values: 7x21 0x20}
    promql_expr_test:
      - expr: %q
        eval_time: 6m
        exp_samples:
          - {labels: '{instance="failed", error_type="lost"}', value: 0}
          - {labels: '{instance="restarted", error_type="lost"}', value: 2}
          - {labels: '{instance="without a gap", error_type="lost"}', value: 0}
`, panels[i].Targets[0].Query()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", file)
}

func TestALegendNamesASeries(t *testing.T) {
	t.Parallel()
	target := dashboard.Target{LegendFormat: "{{ instance }} {{sqllock_kind}} {{missing}}"}
	if got := target.Legend(map[string]string{"instance": "web-1", "sqllock_kind": "lease"}); got != "web-1 lease" {
		t.Errorf("the legend is %q", got)
	}
}

func needPromtool(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed (Debian: prometheus)")
	}
}

// promtool fails the test unless promtool accepts args, in the folder of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Dir = files
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
