package history_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock/internal/history"
)

const name = "the lock"

// told is a history and the expected result of its check.
type told struct {
	what string
	told func(h *history.History)
	want porcupine.CheckResult
}

func at(from, to time.Duration) history.Span { return history.Span{From: from, To: to} }

func judge(t *testing.T, tests []told) {
	t.Helper()
	for _, test := range tests {
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

func TestWhatIsAndWhatIsNotOneHolderAtATime(t *testing.T) {
	t.Parallel()
	judge(t, []told{
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
	})
}

func TestWhatIsAndWhatIsNotAnExtensionOrAHandover(t *testing.T) {
	t.Parallel()
	judge(t, []told{
		{"a lock is handed over", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Token(1)
			a.Exported(at(2, 3), 20)
			b := a.Adopted(1, at(4, 5))
			b.Token(2)
			b.Wrote(at(6, 7))
			b.Exported(at(8, 9), 20)
			c := b.Adopted(0, at(10, 11))
			c.Token(3)
			c.Released(at(12, 13))
		}, porcupine.Ok},
		{"a stopped process says late that it is alive, and was so before the export", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Alive(at(2, 9))
			a.Exported(at(3, 4), 20)
			a.Adopted(1, at(5, 6)).Alive(at(7, 8))
		}, porcupine.Ok},
		{"an old holder is alive besides who adopted its lock", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			b := a.Adopted(1, at(4, 5))
			a.Alive(at(6, 7))
			b.Alive(at(6, 7))
		}, porcupine.Illegal},
		{"an old holder is alive while nobody has adopted its lock, and that is not forgiven", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Forgive(at(0, 20))
			a.Exported(at(2, 3), 20)
			a.Alive(at(4, 5))
		}, porcupine.Illegal},
		{"an old holder writes", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			a.Adopted(1, at(4, 5)).Wrote(at(8, 9))
			a.Wrote(at(6, 7))
		}, porcupine.Illegal},
		{"who adopts has the old token", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Token(1)
			a.Exported(at(2, 3), 20)
			a.Adopted(1, at(4, 5)).Token(1)
		}, porcupine.Illegal},
		{"a ticket is adopted twice", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			a.Adopted(1, at(4, 7))
			a.Adopted(2, at(5, 6))
		}, porcupine.Illegal},
		{"a lost lock is exported", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(2, 3))
			a.Exported(at(4, 5), 20)
		}, porcupine.Illegal},
		{"a ticket is adopted after somebody took the name", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 1)
			h.Taken(1, name, at(6, 7)).Released(at(8, 9))
			a.Adopted(2, at(10, 11))
		}, porcupine.Illegal},
		{"a name is taken after the time of its ticket", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			h.Taken(1, name, at(8, 22)).Alive(at(23, 24))
			a.Over(at(25, 26))
		}, porcupine.Ok},
		{"a name is taken before the time of its ticket has passed", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			h.Taken(1, name, at(8, 21))
		}, porcupine.Illegal},
		{"a name is freed by force that a ticket is for", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			h.Forgive(at(6, 7))
			h.Taken(1, name, at(8, 9))
			a.Over(at(10, 11))
		}, porcupine.Ok},
		{"a ticket is worth nothing before its time has passed", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			a.Over(at(4, 5))
		}, porcupine.Illegal},
		{"an adoption whose answer was lost is given back", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Exported(at(2, 3), 20)
			a.Void(4)
			a.Over(at(6, 7))
			h.Taken(1, name, at(8, 9))
		}, porcupine.Ok},
		{"a dead one's extended lock is taken over in time", func(h *history.History) {
			h.Taken(0, name, at(0, 1)).Extended(at(2, 3), 10)
			h.Taken(1, name, at(4, 12))
		}, porcupine.Ok},
		{"a dead one's extended lock is taken over too early", func(h *history.History) {
			h.Taken(0, name, at(0, 1)).Extended(at(2, 3), 10)
			h.Taken(1, name, at(4, 11))
		}, porcupine.Illegal},
		{"an extended lock is lost too early", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Extended(at(2, 3), 10)
			a.Over(at(4, 5))
		}, porcupine.Illegal},
		{"an extended lock is released", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Extended(at(2, 3), 10)
			a.Released(at(4, 5))
			h.Taken(1, name, at(6, 7))
		}, porcupine.Ok},
		{"an extended lock is released, and nobody says so", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			a.Extended(at(2, 3), 10)
			a.Void(4)
			h.Taken(1, name, at(6, 7))
		}, porcupine.Ok},
		{"a lost lock is extended", func(h *history.History) {
			a := h.Taken(0, name, at(0, 1))
			h.Taken(1, name, at(2, 3))
			a.Extended(at(4, 5), 10)
		}, porcupine.Illegal},
	})
}

func TestAnIllegalHistoryIsExplained(t *testing.T) {
	t.Parallel()
	var h history.History
	a := h.Taken(0, name, at(0, 1))
	a.Token(7)
	a.Released(at(9, 10))
	h.Taken(0, "another", at(0, 1)).Released(at(2, 3))
	b := h.Taken(1, name, at(2, 3))
	b.Token(8)
	b.Alive(at(4, 5))
	why, err := h.Draw(filepath.Join(t.TempDir(), "drawing.html"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`0s to 1ns: client 0: "the lock": taken 1 (token 7)`,
		`2ns to 3ns: client 1: "the lock": taken 3 (token 8): does not fit`,
		`4ns to 5ns: client 1: "the lock": alive 3 (token 8): does not fit`,
		`9ns to 10ns: client 0: "the lock": released 1 (token 7): does not fit`,
	}
	if !slices.Equal(why, want) {
		t.Errorf("%q", why)
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
		{"tokens rise", []history.Line{{Name: name, Token: 1, Process: 10}, {Name: name, Token: 1, Process: 10}, {Name: name, Token: 2, Process: 11}, {Name: name, Token: 4, Process: 10}}, false},
		{"each name has its own", []history.Line{{Name: name, Token: 3, Process: 10}, {Name: "another", Token: 1, Process: 11}, {Name: name, Token: 4, Process: 10}}, false},
		{"a token falls", []history.Line{{Name: name, Token: 1, Process: 10}, {Name: "another", Token: 1, Process: 10}, {Name: name, Token: 2, Process: 11}, {Name: name, Token: 1, Process: 10}}, true},
		{"two have one token", []history.Line{{Name: name, Token: 1, Process: 10}, {Name: name, Token: 1, Process: 11}}, true},
	} {
		if err := history.CheckJournal(test.journal); (err != nil) != test.stale {
			t.Errorf("%s: %v", test.what, err)
		}
	}
}
