package history_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock/internal/history"
)

const name = "the lock"

func TestWhatIsAndWhatIsNotOneHolderAtATime(t *testing.T) {
	t.Parallel()
	at := func(from, to time.Duration) history.Span { return history.Span{From: from, To: to} }
	for _, test := range []struct {
		what string
		told func(h *history.History)
		want porcupine.CheckResult
	}{
		{"one after the other", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Alive(at(2, 3))
			a.Released(at(4, 5))
			b := h.Taken(1, name, at(6, 7))
			b.Released(at(8, 9))
		}, porcupine.Ok},
		{"one waits until the other's release is under way", func(h *history.History) {
			b := h.Taken(1, name, at(0, 5))
			a := h.Taken(0, name, at(0, 1))
			a.Released(at(4, 6))
			b.Released(at(7, 8))
		}, porcupine.Ok},
		{"different names", func(h *history.History) {
			a, b := h.Taken(0, name, at(0, 1)), h.Taken(1, "another", at(0, 1))
			a.Released(at(4, 5))
			b.Released(at(4, 5))
		}, porcupine.Ok},
		{"two holders", func(h *history.History) {
			a, b := h.Taken(0, name, at(0, 1)), h.Taken(1, name, at(2, 3))
			a.Released(at(4, 5))
			b.Released(at(6, 7))
		}, porcupine.Illegal},
		{"two holders of one process", func(h *history.History) {
			a, b := h.Taken(0, name, at(0, 1)), h.Taken(0, name, at(2, 3))
			b.Released(at(4, 5))
			a.Released(at(6, 7))
		}, porcupine.Illegal},
		{"two holders, of whom one dies", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(2, 3))
			a.Released(at(4, 5))
		}, porcupine.Illegal},
		{"a dead one's lock is taken over", func(h *history.History) {
			h.Taken(0, name, at(0, 1)).Alive(at(2, 3))
			h.Taken(1, name, at(4, 5)).Released(at(6, 7))
		}, porcupine.Ok},
		{"a lost lock is said to be alive", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(2, 3)).Released(at(4, 5))
			a.Alive(at(6, 7))
		}, porcupine.Illegal},
		{"a stopped process answers late what was true", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(3, 4)).Released(at(5, 6))
			a.Alive(at(2, 7))
		}, porcupine.Ok},
		{"a stopped process that never answers is not waited for", func(h *history.History) {
			h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(2, 3)).Alive(at(4, 5))
		}, porcupine.Ok},
		{"a release succeeds after somebody else took the lock", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(2, 3))
			a.Released(at(4, 5))
		}, porcupine.Illegal},
		{"an ended connection is noticed late", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Forgive(at(2, 10))
			h.Taken(1, name, at(3, 4)).Released(at(5, 6))
			a.Alive(at(7, 8))
		}, porcupine.Ok},
		{"an ended connection is noticed too late", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Forgive(at(2, 10))
			h.Taken(1, name, at(3, 4)).Released(at(5, 6))
			a.Alive(at(11, 12))
		}, porcupine.Illegal},
		{"a release over an ended connection succeeds", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Forgive(at(2, 10))
			h.Taken(1, name, at(3, 4)).Released(at(5, 6))
			a.Released(at(7, 8))
		}, porcupine.Illegal},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			var h history.History
			test.told(&h)
			if got := h.Check(); got != test.want {
				t.Errorf("the history is %s; want %s", got, test.want)
			}
		})
	}
}
