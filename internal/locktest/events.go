package locktest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
)

// Events tests the events that a Locker sends to its hook and its logger. newLocker opens Lockers on the same database,
// and opts.Lose takes their locks away.
func Events(
	t *testing.T,
	newLocker func(t *testing.T, hook func(context.Context, sqllock.Event), logger *slog.Logger) Locker,
	opts Options,
) {
	t.Helper()
	var told events
	var log syncBuffer
	l := newLocker(t, told.add, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	other := newLocker(t, nil, nil)

	lock := MustTry(t, l, "it")
	token := told.last(event.Acquired).Token
	if lease, is := lock.(interface{ Token() int64 }); is && lease.Token() != token || !is && token != 0 {
		t.Errorf("it was told with token %d", token)
	}
	if who := told.last(event.Acquired).Locker; who.Kind != opts.Kind || who.System == "" || who.Owner == "" {
		t.Errorf("told by %+v", who)
	}
	told.mustBe(t, "acquired it")
	MustBeHeld(t, other, "it")
	MustRelease(t, lock)
	Eventually(t, "the release is told", func() bool { return told.last(event.Released).Name == "it" })
	if again := told.last(event.Released).Token; again != token {
		t.Errorf("its release was told with token %d", again)
	}
	told.mustBe(t, "released it")
	MustRelease(t, lock)

	lock = MustTry(t, other, "it")
	MustBeHeld(t, l, "it")
	told.mustBe(t, "failed it: sqllock: acquire \"it\": "+sqllock.ErrHeld.Error())
	MustRelease(t, lock)

	toldOfAll(t, l, other, &told)

	_, err := l.TryAcquire(t.Context(), "")
	mustMatch(t, err, sqllock.ErrName)
	told.mustBe(t, "failed : ")

	lock = MustTry(t, other, "it")
	waiting := startWaiter(bounded(t), l, "it")
	Eventually(t, "the wait is told", func() bool { return told.last(event.Waiting).Name == "it" })
	waiting.mustBlock(t)
	if e := told.last(event.Waited); e.Kind != "" {
		t.Errorf("told while the lock is held: %v", e)
	}
	MustRelease(t, lock)
	lock = waiting.result(t).lock
	Eventually(t, "the acquisition is told", func() bool { return told.last(event.Acquired).Took > 0 })
	before, wait, whole := told.last(event.Waiting).Took, told.last(event.Waited).Took, told.last(event.Acquired)
	if before > wait || wait <= 0 || wait > whole.Took || !whole.Waited {
		t.Errorf("of an acquisition of %v, a wait was told after %v, and its end after %v", whole, before, wait)
	}
	left, held := whole.Locker.Holds.Remaining()
	if !held || left <= 0 {
		t.Errorf("a Locker that holds a lock says that it lasts for %v, %v", left, held)
	}
	told.mustBe(t, "waiting it", "waited it", "acquired it")

	opts.Lose(t, "it")
	mustEnd(t, lock, sqllock.ErrLost)
	Eventually(t, "the loss is told", func() bool { return told.last(event.Lost).Token == whole.Token })
	told.mustBe(t, "lost it: "+sqllock.ErrLost.Error())
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
	if line := log.find("level=WARN", "lock lost", "lock=it"); line == "" {
		t.Errorf("the loss is not in the log:\n%s", log.String())
	}

	lock = MustAcquire(t, other, "it")
	mustWaitInVain(t, func(ctx context.Context) error {
		_, err := l.Acquire(ctx, "it")
		if !told.last(event.Failed).Waited { // the deadline has passed before the wait began
			return context.DeadlineExceeded
		}
		return err
	})
	if e := told.last(event.Waited); !errors.Is(e.Err, context.DeadlineExceeded) {
		t.Errorf("a wait in vain ended with %v", e.Err)
	}
	if e := told.last(event.Failed); !e.Waited || e.Locker.Holds != whole.Locker.Holds {
		t.Errorf("told after a wait in vain: %v", e)
	}
	if left, held := whole.Locker.Holds.Remaining(); held {
		t.Errorf("a Locker that holds nothing says that it lasts for %v", left)
	}
	MustRelease(t, lock)
	told.forget()

	MustTry(t, l, "kept")
	Eventually(t, "a heartbeat was told", func() bool { return told.last(event.Renewed).Locks == 1 })
	mustClose(t, l)
	told.mustBe(t, "acquired kept", "released kept: "+sqllock.ErrClosed.Error())
	if log.find("level=WARN", "kept") != "" {
		t.Errorf("closing is a warning in the log:\n%s", log.String())
	}
}

// toldOfAll tests the events of AcquireAll. A hook counts as a lock what was acquired and neither released nor lost. So a name
// that is acquired and given back, because another one is not to be had, is no lock, and a try before the wait no failure.
func toldOfAll(t *testing.T, l, other Locker, told *events) {
	t.Helper()
	lock := MustTry(t, other, "it")
	all := make(chan sqllock.Lock, 1)
	go func() {
		got, err := sqllock.AcquireAll(bounded(t), l, []string{"also", "it"})
		if err != nil {
			t.Error(err)
		}
		all <- got
	}()
	Eventually(t, "the wait is told", func() bool { return told.last(event.Waiting).Name == "it" })
	MustBeHeld(t, other, "also")
	if e := told.last(event.Acquired); e.Kind != "" {
		t.Errorf("told while the other name is not acquired: %v", e)
	}
	MustRelease(t, lock)
	if got := <-all; got != (*sqllock.Locks[sqllock.Lock])(nil) {
		told.mustBe(t, "waiting it", "waited it", "acquired also", "acquired it")
		MustRelease(t, got)
	}
	Eventually(t, "both releases are told", func() bool { return told.count(event.Released) == 2 })
	told.forget()

	lock = MustTry(t, other, "it")
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := sqllock.AcquireAll(ctx, l, []string{"also", "it"})
		failed <- err
	}()
	Eventually(t, "the wait is told", func() bool { return told.last(event.Waiting).Name == "it" })
	cancel()
	mustMatch(t, <-failed, context.Canceled)
	told.mustBe(t, "waiting it", "waited it: ", "failed it: ", "failed also: sqllock: acquire \"also\": sqllock: acquire \"it\": ")
	MustRelease(t, lock)
	mustBecomeFree(t, other, "it") // the wait may end later than its caller
}

func toldEvents(t *testing.T, s sessions) {
	Events(t, func(t *testing.T, hook func(context.Context, sqllock.Event), logger *slog.Logger) Locker {
		t.Helper()
		return open(t, s, Settings{Hook: hook, Logger: logger})
	}, Options{Lose: s.End, Kind: "session"})
}

// events collects the events of a hook.
type events struct {
	mu  sync.Mutex
	all []sqllock.Event // guarded by mu
}

func (e *events) add(_ context.Context, told sqllock.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, told)
}

func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// retried reports whether a wait has reported a retry.
func (e *events) retried() bool { return e.last(event.Retrying).Kind != "" }

// last returns the last event of a kind.
func (e *events) last(kind event.Kind) (last sqllock.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, told := range e.all {
		if told.Kind == kind {
			last = told
		}
	}
	return last
}

// count returns how many events of a kind there are.
func (e *events) count(kind event.Kind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, told := range e.all {
		if told.Kind == kind {
			n++
		}
	}
	return n
}

// mustBe waits for the events since its last call, except those of heartbeats and of late answers. Each is "kind name",
// followed by a colon and the beginning of its error if there is one. There may be no others.
func (e *events) mustBe(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	Eventually(t, "the events are told", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		got = nil
		for _, told := range e.all {
			switch told.Kind {
			case event.Renewed, event.RenewalFailed, event.Expiring, event.Retrying:
				continue
			}
			line := string(told.Kind) + " " + told.Name
			if told.Err != nil {
				line += ": " + told.Err.Error()
			}
			got = append(got, line)
		}
		return len(got) >= len(want)
	})
	if len(got) != len(want) {
		t.Fatalf("events %q; want %q", got, want)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("events %q; want %q", got, want)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// syncBuffer is the buffer of a log, safe for concurrent use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// find returns the line that contains all parts.
func (s *syncBuffer) find(parts ...string) string {
lines:
	for line := range strings.Lines(s.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		return line
	}
	return ""
}
