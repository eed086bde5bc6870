package page_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/page"
	"github.com/sqllock/sqllock/bench/internal/result"
)

const document = "Before\n<!-- figures: latency -->\nold\n<!-- end of figures -->\nafter\n"

func TestADocumentGetsTheFiguresOfARun(t *testing.T) {
	t.Parallel()
	r := &result.Result{}
	for _, s := range []struct {
		name   string
		values []float64
	}{{"pg_advisory_lock", []float64{90, 100, 110}}, {"sqllock/pg", []float64{150}}} {
		for _, v := range s.values {
			r.Samples = append(r.Samples, result.Sample{
				Scenario: "latency", Kind: string(lock.Postgres) + "/" + s.name, Metric: "pair_us", Value: v,
			})
		}
	}
	filled := fill(t, document, r)
	for _, want := range []string{
		"Before\n<!-- figures: latency -->\n![latency](performance/latency.svg)\n\n|", "-->\nafter\n", "bare: pg_advisory_lock | – | – | 100 (90–110) | 1.00 |",
		"**sqllock/pg** | – | – | 150 | 1.50 |",
	} {
		if !strings.Contains(filled, want) {
			t.Errorf("it has not %q:\n%s", want, filled)
		}
	}
	if again := fill(t, filled, r); again != filled {
		t.Errorf("another time changes it:\n%s", again)
	}
}

func TestADocumentWithFiguresThatDoNotExistIsRefused(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{"<!-- figures: size -->\n<!-- end of figures -->", "<!-- figures: latency -->\n"} {
		if _, err := page.Fill(broken, nil); err == nil {
			t.Errorf("%q is filled", broken)
		}
	}
}

func TestTheDocumentHasTheFiguresOfTheNewestRun(t *testing.T) {
	t.Parallel()
	newest, err := result.Newest("../../results")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	if fill(t, string(text), newest) != string(text) {
		t.Error("docs/performance.md is not what cd bench && go run ./report writes")
	}
}

func fill(t *testing.T, text string, r *result.Result) string {
	t.Helper()
	filled, err := page.Fill(text, r)
	if err != nil {
		t.Fatal(err)
	}
	return filled
}
