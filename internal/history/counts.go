//go:build unix

package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

func (r *run) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// told counts an answer that is not an error.
func (r *run) told(what string) {
	r.count(what)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heard++
}

func (r *run) answers() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard
}

// missing returns what the history must show but has not shown yet.
func (r *run) missing() string {
	if r.want != porcupine.Ok {
		if r.history.Check() != r.want {
			return "the check found nothing, and should have"
		}
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	moved := r.counts[didExtend] > 0 && r.counts[doAdopt+" "+didTake] > 0
	wrote := r.counts[doGuard+" "+didWrite] > 0 && r.counts[doFence+" "+didWrite] > 0
	switch {
	case r.counts[didRefuse] == 0:
		return "nobody was refused, so nobody contended"
	case r.opts.Moves && !moved:
		return "no lock was extended, or none was handed over"
	case r.opts.Writes && r.opts.Limits == nil && !wrote: // with many sharers, too few hold the name alone for long enough
		return "nobody wrote"
	}
	return ""
}

// enough reports whether there are enough answers, and nothing is missing.
func (r *run) enough(answers int) bool {
	return r.answers() >= answers && (r.missing() == "" || time.Since(r.began) > shownWithin)
}

// counted formats counts.
func counted(counts map[string]int) string {
	var parts []string
	for what, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.SortFunc(parts, func(a, b string) int {
		return strings.Compare(a[strings.Index(a, " "):], b[strings.Index(b, " "):])
	})
	return strings.Join(parts, ", ")
}
