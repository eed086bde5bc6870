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
		{"tokens rise, and some were given to nobody who said so", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Token(1)
			a.Released(at(2, 3))
			b := h.Taken(1, name, at(4, 5))
			b.Token(3)
			b.Wrote(at(6, 7))
			b.Released(at(8, 9))
		}, porcupine.Ok},
		{"a token falls", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Token(2)
			a.Released(at(2, 3))
			h.Taken(1, name, at(4, 5)).Token(1)
		}, porcupine.Illegal},
		{"a token is given twice", func(h *history.History) {
			h.Taken(0, name, at(0, 1)).Token(2)
			h.Taken(1, name, at(0, 1)).Token(2)
		}, porcupine.Illegal},
		{"tokens of two names", func(h *history.History) {
			h.Taken(0, name, at(0, 1)).Token(2)
			h.Taken(1, "another", at(2, 3)).Token(1)
		}, porcupine.Ok},
		{"a stopped process guarded a transaction before it was followed", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(4, 5)).Wrote(at(6, 7))
			a.Wrote(at(2, 8))
		}, porcupine.Ok},
		{"a lost lock guards a transaction, and that is not forgiven", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Forgive(at(2, 10))
			h.Taken(1, name, at(3, 4)).Wrote(at(5, 6))
			a.Wrote(at(7, 8))
		}, porcupine.Illegal},
		{"a lost lock is told apart by its token", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Token(1)
			h.Taken(1, name, at(2, 3)).Token(2)
			a.Outdone(at(4, 5))
		}, porcupine.Ok},
		{"the holder is told apart by its token", func(h *history.History) {
			h.Taken(0, name, at(0, 1)).Token(1)
			b := h.Taken(1, name, at(2, 3))
			b.Token(2)
			b.Outdone(at(4, 5))
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

func TestAStaleLineIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what    string
		journal []history.Line
		stale   bool
	}{
		{"nothing was written", nil, false},
		{"tokens rise", []history.Line{{name, 1, 10}, {name, 1, 10}, {name, 2, 11}, {name, 4, 10}}, false},
		{"each name has its own", []history.Line{{name, 3, 10}, {"another", 1, 11}, {name, 4, 10}}, false},
		{"a token falls", []history.Line{{name, 1, 10}, {"another", 1, 10}, {name, 2, 11}, {name, 1, 10}}, true},
		{"two have one token", []history.Line{{name, 1, 10}, {name, 1, 11}}, true},
	} {
		if err := history.CheckJournal(test.journal); (err != nil) != test.stale {
			t.Errorf("%s: %v", test.what, err)
		}
	}
}
