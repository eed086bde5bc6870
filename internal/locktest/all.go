package locktest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sqllock/sqllock"
)

// allTests are about AcquireAll.
type allTests struct{ suite }

func (s allTests) tests() []test {
	return []test{
		{"AcquireAll takes every name once and in order", s.allNames},
		{"AcquireAll takes all or nothing", s.allOrNothing},
		{"AcquireAll of overlapping names does not deadlock", s.allOverlapping},
		{"AcquireAll ends when one of its locks is lost", s.allLost},
		{"AcquireAll of no names is an error", s.allOfNone},
	}
}

func (s allTests) allNames(t *testing.T) {
	a, b := s.twoLockers(t)
	x, y, z := t.Name()+"/x", t.Name()+"/y", t.Name()+"/z"
	all, err := sqllock.AcquireAll(bounded(t), a, []string{z, x, y, x, z})
	if err != nil {
		t.Fatal(err)
	}
	if want := x + "," + y + "," + z; all.Name() != want {
		t.Errorf("Name() = %q; want %q", all.Name(), want)
	}
	for _, name := range []string{x, y, z} {
		MustBeHeld(t, b, name)
	}
	MustLive(t, all)
	MustRelease(t, all)
	MustRelease(t, all)
	for _, name := range []string{x, y, z} {
		MustRelease(t, MustTry(t, b, name))
	}
}

// I39.
func (s allTests) allOrNothing(t *testing.T) {
	a, b := s.twoLockers(t)
	x, y, z := t.Name()+"/x", t.Name()+"/y", t.Name()+"/z"
	lock := MustTry(t, b, y)
	mustWaitInVain(t, func(ctx context.Context) error {
		all, err := sqllock.AcquireAll(ctx, a, []string{x, y, z})
		if all != nil {
			t.Error("there is a lock")
		}
		return err
	})
	// A claim that was not answered by the deadline is given back when its answer comes.
	mustBecomeFree(t, b, x)
	mustBecomeFree(t, b, z)
	MustRelease(t, lock)
	mustBecomeFree(t, s.locker(t), y)
}

// I39.
func (s allTests) allOverlapping(t *testing.T) {
	names := []string{t.Name() + "/1", t.Name() + "/2", t.Name() + "/3", t.Name() + "/4"}
	lockers := []Locker{s.locker(t), s.locker(t), s.locker(t)}
	inParallel(t, 6, func(ctx context.Context, i int) error {
		for range 4 {
			mine := slices.Clone(names)
			rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			all, err := sqllock.AcquireAll(ctx, lockers[i%len(lockers)], mine[:3])
			if err != nil {
				return err
			}
			if err := all.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s allTests) allLost(t *testing.T) {
	l := s.locker(t)
	x, y := t.Name()+"/x", t.Name()+"/y"
	all, err := sqllock.AcquireAll(bounded(t), l, []string{x, y})
	if err != nil {
		t.Fatal(err)
	}
	s.lose(t, y)
	mustEnd(t, all, sqllock.ErrLost)
	mustMatch(t, all.Release(t.Context()), sqllock.ErrLost)
	mustBecomeFree(t, l, x)
	mustBecomeFree(t, l, y)
}

func (s allTests) allOfNone(t *testing.T) {
	if all, err := sqllock.AcquireAll(t.Context(), s.locker(t), nil); all != nil || err == nil {
		t.Fatalf("AcquireAll of no names = %v, %v", all, err)
	}
}
