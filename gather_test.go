package sqllock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// meeting is a Locker of free names whose acquisitions meet, but for those of some names.
type meeting struct {
	absent func(name string) bool
	ended  bool // the contexts that they meet with

	mu   sync.Mutex
	all  []int           // guarded by mu: how many the first of them got
	late map[string]bool // guarded by mu: whether one who came again was awaited
}

func (m *meeting) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	var o sqllock.Options
	for _, opt := range opts {
		opt(&o)
	}
	if m.absent(name) {
		return nil, errors.New("absent")
	}
	if o.Meet != nil {
		met, cancel := context.WithCancel(ctx)
		defer cancel()
		if m.ended {
			cancel()
		}
		all, awaited := o.Meet(met, name)
		_, again := o.Meet(met, name)
		m.mu.Lock()
		defer m.mu.Unlock()
		if all != nil {
			m.all = append(m.all, len(all))
		}
		m.late[name] = again || !awaited && !m.ended
	}
	return hold.New(ctx, name, func(context.Context) error { return nil }), nil
}

func (m *meeting) Acquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return hold.New(ctx, name, func(context.Context) error { return nil }), nil
}

func TestThePartsOfAcquireAllMeet(t *testing.T) {
	t.Parallel()
	names := make([]string, 100)
	for i := range names {
		names[i] = strconv.Itoa(1000 + i)
	}
	for what, test := range map[string]struct {
		absent func(name string) bool
		ended  bool
		want   []int // how many meet, of all who try, and of all but the first; 0: some
	}{
		"all":                   {func(string) bool { return false }, false, []int{100}},
		"all but some who fail": {func(name string) bool { return name[3] == '5' }, false, []int{90, 89}},
		"those who were there":  {func(string) bool { return false }, true, []int{0}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := &meeting{absent: test.absent, ended: test.ended, late: make(map[string]bool)}
			lock, err := sqllock.AcquireAll(t.Context(), m, names)
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if !slices.EqualFunc(m.all, test.want, func(met, want int) bool { return met == want || want == 0 }) {
				t.Errorf("%v met; want %d", m.all, test.want)
			}
			for name, late := range m.late {
				if late {
					t.Errorf("%s was not awaited, or twice", name)
				}
			}
		})
	}
}
