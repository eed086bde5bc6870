package store_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// kinds are the kinds of steps. Those that acquire are drawn more often.
func (w *world) kinds() []func() step {
	return []func() step{
		w.read, w.read, w.acquire, w.acquire, w.acquireFree, w.acquireMany, w.insert, w.takeover, w.convert,
		w.release, w.release, w.releaseMany, w.releaseByLease, w.force,
		w.move, w.adopt, w.handOff, w.setMetadata,
		w.acquirePermit, w.acquirePermit, w.releasePermit, w.clearPermit, w.bumpToken, w.forcePermits,
		w.noteWaiter, w.removeWaiter, w.noteExclusive, w.list, w.namesOf, w.stillHeld,
		w.renew, w.endLease, w.expire, w.expireUnchanged,
	}
}

func (w *world) read() step {
	name := w.name()
	return step{"read " + name, "", func(ctx context.Context, s store.Store) (string, error) {
		state, err := s.Read(ctx, name)
		return w.note(name, state), err
	}}
}

func (w *world) onRequest(kind string, f func(context.Context, store.Store, *store.Request) (any, error)) step {
	req := w.request()
	return step{fmt.Sprintf("%s %+v", kind, *req), req.Name, func(ctx context.Context, s store.Store) (string, error) {
		return results(f(ctx, s, req))
	}}
}

func (w *world) acquire() step {
	return w.onRequest("acquire", func(ctx context.Context, s store.Store, r *store.Request) (any, error) { return s.Acquire(ctx, r) })
}

func (w *world) acquireFree() step {
	return w.onRequest("acquire free", func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		if got, err := s.Read(ctx, r.Name); err != nil || got.Token == 0 {
			return nil, err // with a new name the servers differ: some insert it
		}
		return s.AcquireFree(ctx, r)
	})
}

func (w *world) insert() step {
	return w.onRequest("insert", func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		if got, err := s.Read(ctx, r.Name); err != nil || got.Token != 0 {
			return nil, err // with a row the servers differ: some acquire
		}
		return s.Insert(ctx, r)
	})
}

func (w *world) acquireMany() step {
	reqs := w.requests()
	return step{fmt.Sprintf("acquire many %+v", *reqs[0]), "", func(ctx context.Context, s store.Store) (string, error) {
		for _, r := range reqs {
			r.Token = 0
		}
		got, err := s.AcquireMany(ctx, reqs)
		for _, r := range reqs {
			if w.leavesOut && err == nil && got[r.Name].Token == 0 {
				err = acquireLeftOut(ctx, s, r, got)
			}
		}
		return describeResults(got), err
	}}
}

// acquireLeftOut acquires a free name that MariaDB has left to the statement that follows, as the claims do.
func acquireLeftOut(ctx context.Context, s store.Store, r *store.Request, got map[string]store.Result) error {
	state, err := s.Read(ctx, r.Name)
	if err != nil || state.Token == 0 {
		return err
	}
	one, err := s.AcquireFree(ctx, r)
	if one.Token != 0 {
		got[r.Name] = one
	}
	return err
}

// ending returns a function that ends a lease half of the times, as statements expect that believe it gone.
func (w *world) ending() func(ctx context.Context, s store.Store, id []byte) error {
	ends := w.draw.IntN(2) == 0
	return func(ctx context.Context, s store.Store, id []byte) error {
		if !ends || id == nil {
			return nil
		}
		return s.EndLease(ctx, id)
	}
}

func (w *world) takeover() step {
	dead, end := w.lease(), w.ending()
	return w.onRequest("take over from "+string(dead), func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		if err := end(ctx, s, dead); err != nil {
			return nil, err
		}
		return s.Takeover(ctx, r, dead)
	})
}

func (w *world) convert() step {
	return w.onRequest("convert", func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		return s.Convert(ctx, r.Name, r.Token, r.ID, r.Metadata)
	})
}

func (w *world) release() step {
	return w.onRequest("release", func(ctx context.Context, s store.Store, r *store.Request) (any, error) { return s.Release(ctx, r) })
}

func (w *world) releaseMany() step {
	reqs := w.requests()
	return step{fmt.Sprintf("release many %+v", *reqs[0]), "", func(ctx context.Context, s store.Store) (string, error) {
		got, err := s.ReleaseMany(ctx, reqs)
		return describeResults(got), err
	}}
}

func (w *world) releaseByLease() step {
	return w.onRequest("release by lease", func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		return s.ReleaseByLease(ctx, r.Name, r.ID, r.MinHold)
	})
}

func (w *world) force() step {
	name := w.name()
	state := w.state(name)
	return step{fmt.Sprintf("force %s %s", name, describe(state)), name, func(ctx context.Context, s store.Store) (string, error) {
		return results(s.Force(ctx, name, state))
	}}
}

func (w *world) onHeld(kind string, f func(context.Context, store.Store, store.Held) (any, error)) step {
	h := w.held()
	return step{fmt.Sprintf("%s %+v", kind, h), h.Name, func(ctx context.Context, s store.Store) (string, error) {
		return results(f(ctx, s, h))
	}}
}

func (w *world) move() step {
	to := w.lease()
	return w.onHeld("move to "+string(to), func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		return s.Move(ctx, h.Name, h.Token, h.Lease, to)
	})
}

func (w *world) adopt() step {
	to, metadata := w.lease(), w.metadata()
	if metadata[0] < '5' {
		metadata = nil
	}
	return w.onHeld(fmt.Sprintf("adopt by %s with %q", to, metadata), func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		return s.Adopt(ctx, h, to, metadata)
	})
}

func (w *world) handOff() step {
	metadata, n := w.metadata(), 1+w.draw.Int64N(3)
	return w.onHeld(fmt.Sprintf("hand off with %d tokens", n), func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		last, hasWaiter, err := s.HandOff(ctx, h, n, metadata)
		return fmt.Sprint(last, hasWaiter), err
	})
}

func (w *world) setMetadata() step {
	metadata := w.metadata()
	return w.onHeld("set metadata", func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		return s.SetMetadata(ctx, h, metadata)
	})
}

func (w *world) acquirePermit() step {
	name := w.name()
	state, id, limit, end := w.state(name), w.lease(), w.draw.IntN(3), w.ending()
	return step{fmt.Sprintf("permit of %d %s %s for %s", limit, name, describe(state), id), name, func(ctx context.Context, s store.Store) (string, error) {
		if err := end(ctx, s, state.LeaseID); err != nil {
			return "", err
		}
		return results(s.AcquirePermit(ctx, name, state, id, limit))
	}}
}

func (w *world) releasePermit() step {
	return w.onHeld("release permit", func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		return s.ReleasePermit(ctx, h.Name, h.Lease, h.Token)
	})
}

func (w *world) clearPermit() step {
	end := w.ending()
	return w.onHeld("clear permit", func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		if err := end(ctx, s, h.Lease); err != nil {
			return nil, err
		}
		return s.ClearPermit(ctx, h.Name, store.State{Token: h.Token, LeaseID: h.Lease})
	})
}

func (w *world) bumpToken() step {
	name := w.name()
	state := w.state(name)
	return step{fmt.Sprintf("bump token %s %s", name, describe(state)), name, func(ctx context.Context, s store.Store) (string, error) {
		return results(nil, s.BumpToken(ctx, name, state))
	}}
}

func (w *world) forcePermits() step {
	return w.onHeld("force permits", func(ctx context.Context, s store.Store, h store.Held) (any, error) {
		return s.ForcePermits(ctx, h.Name, h.Token)
	})
}

func (w *world) noteWaiter() step {
	return w.onRequest("note waiter", func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		return s.NoteWaiter(ctx, r.Name, r.Since+1, far)
	})
}

func (w *world) removeWaiter() step {
	return w.onRequest("remove waiter", func(ctx context.Context, s store.Store, r *store.Request) (any, error) {
		return nil, s.RemoveWaiter(ctx, r.Name, r.Since+1)
	})
}

func (w *world) noteExclusive() step {
	name := w.name()
	var us any
	if w.draw.IntN(2) == 0 {
		us = far.Microseconds()
	}
	return step{fmt.Sprint("note exclusive waiter ", name, us), name, func(ctx context.Context, s store.Store) (string, error) {
		return "", s.NoteExclusiveWaiter(ctx, name, us)
	}}
}

func (w *world) list() step {
	return step{"list", "", func(ctx context.Context, s store.Store) (string, error) {
		all, err := s.List(ctx, w.names[0], w.names[1], 10)
		if err != nil {
			return "", err
		}
		permits, err := s.ListPermits(ctx, []byte(w.names[0]), []byte(w.names[1]))
		return describe(all...) + describe(permits...), err
	}}
}

func (w *world) onLease(kind string, f func(context.Context, store.Store, []byte) (any, error)) step {
	id := w.lease()
	return step{kind + " " + string(id), "", func(ctx context.Context, s store.Store) (string, error) { return results(f(ctx, s, id)) }}
}

func (w *world) namesOf() step {
	return w.onLease("names of", func(ctx context.Context, s store.Store, id []byte) (any, error) {
		var all []store.State
		for after := ""; ; {
			page, err := s.NamesOf(ctx, id, after, 2)
			last := slices.IndexFunc(page, func(s store.State) bool { return s.Token == 0 })
			if err != nil || last < 0 {
				return describe(sortStates(all)...), err
			}
			after = string(page[last].Name)
			all = append(all, slices.Delete(page, last, last+1)...)
		}
	})
}

func (w *world) stillHeld() step {
	names := []string{w.name(), w.name()}
	return w.onLease(fmt.Sprint("still held ", names), func(ctx context.Context, s store.Store, id []byte) (any, error) {
		all, err := s.StillHeld(ctx, id, names)
		return describe(sortStates(all)...), err
	})
}

func (w *world) renew() step {
	return w.onLease("renew", func(ctx context.Context, s store.Store, id []byte) (any, error) {
		there, changes, err := s.Renew(ctx, id)
		return fmt.Sprint(there, changes), err
	})
}

func (w *world) endLease() step {
	return w.onLease("end", func(ctx context.Context, s store.Store, id []byte) (any, error) { return nil, s.EndLease(ctx, id) })
}

func (w *world) expire() step {
	return w.onLease("expire", func(ctx context.Context, s store.Store, id []byte) (any, error) { return s.Expire(ctx, id) })
}

func (w *world) expireUnchanged() step {
	renewals := int64(w.draw.IntN(2))
	return w.onLease(fmt.Sprint("expire if renewed ", renewals, " times"), func(ctx context.Context, s store.Store, id []byte) (any, error) {
		return s.ExpireUnchanged(ctx, id, renewals)
	})
}
