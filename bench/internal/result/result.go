// Package result has what a run has measured, as it is stored.
package result

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Result is a run.
type Result struct {
	Began    time.Time         `json:"began"`
	Took     string            `json:"took"`
	Quick    bool              `json:"quick,omitempty"` // too short to mean anything
	Machine  Machine           `json:"machine"`
	Servers  map[string]string `json:"servers"`
	Versions map[string]string `json:"versions"` // of the libraries
	Samples  []Sample          `json:"samples"`
}

// Machine is where a run was made.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Memory string  `json:"memory"`
	System string  `json:"system"`
	Go     string  `json:"go"`
	Sync   float64 `json:"fsync_us"` // the median time of a write of 8 kB that is synced to the disk
	Load   string  `json:"load"`     // of the minute before the run
}

// Sample is one measured value.
type Sample struct {
	Scenario string  `json:"scenario"`
	Kind     string  `json:"kind"` // the ID of a lock.Kind
	N        int     `json:"n,omitempty"`
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Note     string  `json:"note,omitempty"`
}

// Write writes a run to a file.
func (r *Result) Write(name string) error {
	samples := make([]string, len(r.Samples))
	for i, s := range r.Samples {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		samples[i] = "    " + string(line)
	}
	head := *r
	head.Samples = []Sample{}
	text, err := json.MarshalIndent(&head, "", "  ")
	if err != nil {
		return err
	}
	lines := strings.Replace(string(text), `"samples": []`, "\"samples\": [\n"+strings.Join(samples, ",\n")+"\n  ]", 1)
	return os.WriteFile(name, []byte(lines+"\n"), 0o644) //nolint:gosec // it is no secret
}

// Again replaces the scenarios of r that were measured again by those of another run.
func (r *Result) Again(by *Result) {
	again := make(map[string]bool)
	for _, s := range by.Samples {
		again[s.Scenario] = true
	}
	r.Samples = slices.DeleteFunc(r.Samples, func(s Sample) bool { return again[s.Scenario] })
	r.Samples = append(r.Samples, by.Samples...)
}

// Read reads a run from a file.
func Read(name string) (*Result, error) {
	text, err := os.ReadFile(name) //nolint:gosec // the caller's file
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// Summary is the median and the range of the values of all rounds. If there are more than ten, the range is that of the
// middle half.
type Summary struct{ Median, Min, Max float64 }

// Of returns the summary of a metric; false if it was not measured.
func (r *Result) Of(scenario, kind string, n int, metric string) (Summary, bool) {
	var values []float64
	for _, s := range r.Samples {
		if s.Scenario == scenario && s.Kind == kind && s.N == n && s.Metric == metric {
			values = append(values, s.Value)
		}
	}
	return Summarize(values)
}

// Summarize returns the summary of values; false if there are none.
func Summarize(values []float64) (Summary, bool) {
	if len(values) == 0 {
		return Summary{}, false
	}
	slices.Sort(values)
	s := Summary{Percentile(values, 50), values[0], values[len(values)-1]}
	if len(values) > 10 {
		s.Min, s.Max = Percentile(values, 25), Percentile(values, 75)
	}
	return s, true
}

// Percentile returns a percentile of sorted values.
func Percentile(sorted []float64, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	if p == 50 && len(sorted)%2 == 0 {
		return (sorted[len(sorted)/2-1] + sorted[len(sorted)/2]) / 2
	}
	return sorted[(len(sorted)-1)*p/100]
}

// Sizes returns the numbers of a scenario, in order.
func (r *Result) Sizes(scenario string) (sizes []int) {
	for _, s := range r.Samples {
		if s.Scenario == scenario && !slices.Contains(sizes, s.N) {
			sizes = append(sizes, s.N)
		}
	}
	slices.Sort(sizes)
	return sizes
}
