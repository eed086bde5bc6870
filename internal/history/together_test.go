package history_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock/internal/history"
)

// with records a lock that was acquired with a limit.
func with(h *history.History, client int, limit int, token int64, when history.Span) *history.Lock {
	k := h.Taken(client, name, when)
	k.Together(limit)
	k.Token(token)
	return k
}

func TestWhatIsAndWhatIsNotSoManyHoldersAtATime(t *testing.T) {
	t.Parallel()
	judge(t, []told{
		{"two of two, and another when one has gone", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(2, 3))
			a.Alive(at(4, 5))
			a.Released(at(6, 7))
			c := with(h, 2, 2, 3, at(8, 9))
			b.Wrote(at(10, 11))
			c.Wrote(at(10, 11))
			b.Released(at(12, 13))
			c.Released(at(12, 13))
		}, porcupine.Ok},
		{"three of two", func(h *history.History) {
			for i := range 3 {
				with(h, i, 2, int64(i+1), at(0, 5)).Released(at(6, 7))
			}
		}, porcupine.Illegal},
		{"three of two, for one goes while the third comes", func(h *history.History) {
			with(h, 0, 2, 1, at(0, 5)).Released(at(6, 9))
			with(h, 1, 2, 2, at(0, 5)).Released(at(10, 11))
			with(h, 2, 2, 3, at(0, 8)).Released(at(10, 11))
		}, porcupine.Ok},
		{"a dead one makes room, whichever that is", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(0, 1))
			b.Alive(at(2, 3))
			c := with(h, 2, 2, 3, at(4, 5))
			a.Alive(at(6, 7))
			c.Alive(at(6, 7))
		}, porcupine.Ok},
		{"no dead one has made room yet", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(0, 1))
			with(h, 2, 2, 3, at(4, 5))
			a.Alive(at(6, 7))
			b.Alive(at(6, 7))
		}, porcupine.Illegal},
		{"a lost one says so late, and that is forgiven", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(0, 1))
			h.Forgive(at(2, 10))
			with(h, 2, 2, 3, at(4, 5))
			a.Alive(at(6, 7))
			b.Alive(at(11, 12))
		}, porcupine.Ok},
		{"a lost one writes, and that is not forgiven", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(0, 1))
			h.Forgive(at(2, 10))
			with(h, 2, 2, 3, at(4, 5)).Wrote(at(6, 7))
			a.Wrote(at(8, 9))
			b.Alive(at(11, 12))
		}, porcupine.Illegal},
		{"readers, then a writer, then readers", func(h *history.History) {
			for i := range 5 {
				with(h, i, history.Any, int64(i+1), at(0, 1)).Released(at(2, 3))
			}
			with(h, 5, 1, 6, at(4, 5)).Released(at(6, 7))
			for i := range 5 {
				with(h, i, history.Any, int64(i+7), at(8, 9))
			}
		}, porcupine.Ok},
		{"a writer beside a reader", func(h *history.History) {
			a := with(h, 0, history.Any, 1, at(0, 1))
			with(h, 1, 1, 2, at(2, 3))
			a.Alive(at(4, 5))
		}, porcupine.Illegal},
		{"a reader beside a writer", func(h *history.History) {
			a := with(h, 0, 1, 1, at(0, 1))
			with(h, 1, history.Any, 2, at(2, 3))
			a.Released(at(4, 5))
		}, porcupine.Illegal},
		{"two writers", func(h *history.History) {
			a := with(h, 0, 1, 1, at(0, 1))
			with(h, 1, 1, 2, at(2, 3))
			a.Wrote(at(4, 5))
		}, porcupine.Illegal},
		{"one of three beside one of two", func(h *history.History) {
			a := with(h, 0, 2, 1, at(0, 1))
			with(h, 1, 3, 2, at(2, 3))
			a.Alive(at(4, 5))
		}, porcupine.Ok},
		{"one of three beside two of two", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(0, 1))
			with(h, 2, 3, 3, at(2, 3))
			a.Alive(at(4, 5))
			b.Alive(at(4, 5))
		}, porcupine.Illegal},
		{"one of two beside two of three", func(h *history.History) {
			a, b := with(h, 0, 3, 1, at(0, 1)), with(h, 1, 3, 2, at(0, 1))
			with(h, 2, 2, 3, at(2, 3))
			a.Alive(at(4, 5))
			b.Alive(at(4, 5))
		}, porcupine.Illegal},
		{"one of two beside a reader", func(h *history.History) {
			a := with(h, 0, history.Any, 1, at(0, 1))
			with(h, 1, 2, 2, at(2, 3))
			a.Alive(at(4, 5))
		}, porcupine.Illegal},
		{"two of two have the same token", func(h *history.History) {
			with(h, 0, 2, 1, at(0, 1))
			with(h, 1, 2, 1, at(0, 1))
		}, porcupine.Illegal},
		{"the token falls", func(h *history.History) {
			with(h, 0, history.Any, 2, at(0, 1))
			with(h, 1, history.Any, 1, at(2, 3))
		}, porcupine.Illegal},
		{"one who came before another is told so by its token", func(h *history.History) {
			a, b := with(h, 0, 2, 1, at(0, 1)), with(h, 1, 2, 2, at(2, 3))
			a.Outdone(at(4, 5))
			a.Released(at(6, 7))
			b.Released(at(6, 7))
		}, porcupine.Ok},
		{"the last one is told that it came before another", func(h *history.History) {
			with(h, 0, 2, 1, at(0, 1))
			with(h, 1, 2, 2, at(2, 3)).Outdone(at(4, 5))
		}, porcupine.Illegal},
		{"a lock is alive after it was released", func(h *history.History) {
			a := with(h, 0, 2, 1, at(0, 1))
			a.Released(at(2, 3))
			a.Alive(at(4, 5))
		}, porcupine.Illegal},
	})
}

func TestALineThatIsOneTooManyIsFound(t *testing.T) {
	t.Parallel()
	lines := func(limits map[int64]int, tokens ...int64) (journal []history.Line) {
		for _, token := range tokens {
			journal = append(journal, history.Line{Name: name, Token: token, Limit: limits[token]})
		}
		return journal
	}
	two := map[int64]int{1: 2, 2: 2, 3: 2, 4: 2}
	mixed := map[int64]int{1: 2, 2: 3, 3: 3, 4: history.Any}
	readers := map[int64]int{1: history.Any, 2: history.Any, 3: 1, 4: history.Any}
	for _, test := range []struct {
		what    string
		journal []history.Line
		bad     bool
	}{
		{"two by turns", lines(two, 1, 2, 1, 2), false},
		{"one follows another", lines(two, 1, 2, 1, 3, 2, 3, 4, 3), false},
		{"one began to write late", lines(two, 3, 3, 1, 1), false},
		{"three by turns", lines(two, 1, 2, 3, 1, 2), true},
		{"two of two and three by turns", lines(mixed, 1, 2, 1, 2), false},
		{"three by turns, one of whom allows for two", lines(mixed, 2, 3, 1, 2, 3), true},
		{"one of three before a reader, and after it", lines(mixed, 2, 4, 2), true},
		{"readers, a writer, a reader", lines(readers, 2, 1, 2, 1, 3, 4), false},
		{"a reader after the next writer", lines(readers, 1, 2, 3, 1), true},
		{"a reader that had not written yet after the next writer", lines(readers, 2, 3, 1), true},
		{"a writer after the next reader", lines(readers, 2, 4, 3), true},
	} {
		if err := history.CheckJournal(test.journal); (err != nil) != test.bad {
			t.Errorf("%s: %v", test.what, err)
		}
	}
}
