package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// world is what the steps of one sequence are about: two names, and three leases of which one has expired.
type world struct {
	draw   *rand.Rand
	names  []string
	leases [][]byte
	tokens map[string]int64 // the last that were seen

	leavesOut bool // the server may leave free names out of a statement for many
}

// step is one step of the protocol. It returns its outcome as text that is the same on every server.
type step struct {
	text string
	name string // whose row it may wait for
	run  func(ctx context.Context, s store.Store) (string, error)
}

const far = time.Hour // a time that does not pass during the test

func newWorld(seed uint64, prefix string) *world {
	w := &world{draw: rand.New(rand.NewPCG(seed, 0)), tokens: make(map[string]int64)}
	for i := range 2 {
		w.names = append(w.names, fmt.Sprintf("%s-%d", prefix, i))
	}
	for i := range 3 {
		id := []byte(fmt.Sprintf("%-16.14s", prefix))
		id[15] = byte('a' + i)
		w.leases = append(w.leases, id)
	}
	return w
}

// opening returns the steps that open the leases.
func (w *world) opening() (steps []step) {
	for i, id := range w.leases {
		ttl := far
		if i == 2 {
			ttl = 0
		}
		steps = append(steps, step{"open " + string(id), "", func(ctx context.Context, s store.Store) (string, error) {
			_, err := s.OpenLease(ctx, store.LeaseRow{ID: id, Owner: "o", Host: "h", TTL: ttl}, time.Minute)
			return "", err
		}})
	}
	return steps
}

func (w *world) name() string  { return w.names[min(w.draw.IntN(3), 1)] }
func (w *world) lease() []byte { return w.leases[w.draw.IntN(3)] }

// token is mostly the last token of the name that was seen, sometimes one beside it.
func (w *world) token(name string) int64 {
	return max(0, w.tokens[name]+[]int64{0, 0, 0, 0, 0, -1, 1}[w.draw.IntN(7)])
}

func (w *world) metadata() []byte { return []byte{byte('0' + w.draw.IntN(9))} }

// minHold is none, or one that has passed since the acquisition, or one that does not pass. The clock of SQLite has
// milliseconds.
func (w *world) minHold() time.Duration {
	hold := []time.Duration{0, 0, 0, time.Microsecond, far}[w.draw.IntN(5)]
	if hold == time.Microsecond {
		time.Sleep(time.Millisecond) //nolint:forbidigo // a clock that others have too must go on
	}
	return hold
}

func (w *world) request() *store.Request {
	name := w.name()
	return &store.Request{Name: name, ID: w.lease(), Token: w.token(name), Metadata: w.metadata(), Since: int64(w.draw.IntN(3)), MinHold: w.minHold()}
}

// requests are two alike for both names.
func (w *world) requests() (reqs []*store.Request) {
	like := w.request()
	for _, name := range w.names {
		req := *like
		req.Name, req.Token, req.Since = name, max(w.tokens[name], 1), 0
		reqs = append(reqs, &req)
	}
	return reqs
}

// state is one that a caller may have read: of a lease, or of none.
func (w *world) state(name string) store.State {
	s := store.State{Token: w.token(name)}
	if w.draw.IntN(3) == 0 {
		s.LeaseID = w.lease()
	}
	return s
}

func (w *world) held() store.Held {
	name := w.name()
	return store.Held{Name: name, Lease: w.lease(), Token: w.token(name)}
}

// outcome returns an error's meaning.
func outcome(err error) string {
	known := (*dberr.Error)(nil)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &known) && known.OutcomeKnown && known.Transient:
		return "conflict"
	}
	return err.Error()
}

// note remembers the token of a state that was read, and returns the state as text, without times that differ.
func (w *world) note(name string, s store.State) string {
	w.tokens[name] = s.Token
	return describe(s)
}

func describe(states ...store.State) string {
	var b strings.Builder
	for _, s := range states {
		fmt.Fprintf(&b, "[%s token %d lease %s gone %v owner %s host %s ttl %d renewals %d waiter %d metadata %q limit %v/%v permit %v expires %v lasts %v exclusive %v",
			s.Name, s.Token, s.LeaseID, s.Gone, s.Owner, s.Host, s.TTLUS, s.Renewals, s.WaiterUS, s.Metadata, s.Limit.Valid, s.Limit.Int64, s.Permit,
			s.ExpiresUS != 0, s.RemainingUS > 0, s.ExclusiveUS > 0)
		for _, p := range s.Permits {
			b.WriteString(describe(p))
		}
		b.WriteString("]")
	}
	return b.String()
}

func describeResults(all map[string]store.Result) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].Token != 0 {
			fmt.Fprintf(&b, "[%s %+v]", name, all[name])
		}
	}
	return b.String()
}

// results is the outcome of a statement that returns a result or a number.
func results(v any, err error) (string, error) { return fmt.Sprintf("%+v", v), err }

// next draws a step.
func (w *world) next() step {
	kinds := w.kinds()
	k := kinds[w.draw.IntN(len(kinds))]
	return k()
}

func sortStates(all []store.State) []store.State {
	slices.SortFunc(all, func(a, b store.State) int {
		if c := bytes.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(a.Token - b.Token)
	})
	return all
}
