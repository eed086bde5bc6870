package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Draw writes a page that visualizes the history to the file at path. It also returns an explanation of an illegal
// history: for each name the end of the longest order that was found, and the first answers that do not fit.
func (h *History) Draw(path string) (why []string, err error) {
	ops := h.operations()
	_, info := porcupine.CheckOperationsVerbose(h.model(), ops, checkTimeout)
	orders := info.PartialLinearizationsOperations()
	for i, part := range byName(ops) {
		longest := slices.MaxFunc(append(orders[i], nil), func(a, b []porcupine.Operation) int { return len(a) - len(b) })
		rest := slices.DeleteFunc(part, func(op porcupine.Operation) bool { return slices.Contains(longest, op) })
		if len(rest) == 0 {
			continue
		}
		slices.SortFunc(rest, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		const some = 8
		for _, op := range longest[max(0, len(longest)-some):] {
			why = append(why, inWords(op))
		}
		for _, op := range rest[:min(some, len(rest))] {
			why = append(why, inWords(op)+": does not fit")
		}
	}
	return why, porcupine.VisualizePath(h.model(), info, path)
}

func inWords(op porcupine.Operation) string {
	c := op.Input.(claim)
	text := fmt.Sprintf("%v to %v: client %d: %q: %s %d", time.Duration(op.Call), time.Duration(op.Return), op.ClientId, c.name, c.kind, c.lock)
	if c.token != 0 {
		text += fmt.Sprintf(" (token %d)", c.token)
	}
	if c.limit != 0 {
		text += fmt.Sprintf(" with a limit of %d", c.limit)
	}
	if c.until != 0 {
		text += fmt.Sprintf(" until %v", c.until)
	}
	return text
}
