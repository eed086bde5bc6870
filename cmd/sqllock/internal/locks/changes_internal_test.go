package locks

import (
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
)

func TestTheDifferenceOfTwoReadingsIsWhatHappened(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * 1e9)) }
	lease := func(token int64, state string, since, until float64) entry {
		return entry{name: "x", kind: database.KindLease, state: state, taken: at(since), Holder: sqllock.Holder{
			Token: token, Since: at(since), Until: at(until), TTL: 15 * time.Second,
		}}
	}
	held := func(token int64, since, until float64) entry { return lease(token, stateHeld, since, until) }
	free := func(token int64, taken float64) entry {
		return entry{name: "x", kind: database.KindLease, state: stateFree, taken: at(taken), Holder: sqllock.Holder{Token: token}}
	}
	shared := func(e entry) entry { e.shared = true; return e }
	forgotten := func(e entry) entry { e.forgotten = true; return e }
	wanted := func(e entry) entry { e.waiterSince = start; return e }
	session := func(id int64, waiters int) entry {
		return entry{serverName: "key 1", kind: database.KindSession, state: stateHeld, Holder: sqllock.Holder{Session: id, Waiters: waiters}}
	}
	read := func(seconds float64, entries ...entry) reading {
		return reading{entries: entries, now: at(seconds), known: map[string]bool{database.KindLease: true, database.KindSession: true}}
	}
	unread := read(1)
	unread.known = map[string]bool{database.KindLease: true}

	for _, test := range []struct {
		what          string
		before, after reading
		want          []string
	}{
		{"nothing", read(0, held(1, -9, 10)), read(1, held(1, -9, 10)), nil},
		{"a renewal", read(0, held(1, -9, 10)), read(1, held(1, -9, 15)), nil},
		{"an acquisition", read(0), read(1, held(1, 0.5, 15)), []string{eventTaken}},
		{"a release", read(0, held(1, -9, 10)), read(1, free(1, -9)), []string{eventReleased}},
		{"a release, and the next one", read(0, held(1, -9, 10)), read(1, held(2, 0.5, 15)), []string{eventReleased, eventTaken}},
		{"a release, and one who was quick", read(0, held(1, -9, 10)), read(1, free(2, 0.5)), []string{eventReleased}},
		{"two who were quick", read(0, held(1, -9, 10)), read(1, free(3, 0.5)), []string{eventReleased}},
		{"two who were quick, long after", read(0, held(1, -9, 0.5)), read(1, held(3, 0.8, 15)), []string{eventReleased, eventTaken}},
		{"one who was quick after a death", read(0, held(1, -9, 0.5)), read(1, free(2, 0.7)), []string{eventExpired}},
		{"one who was quick, and a time that has passed", read(0, held(1, -9, 0.5)), read(1, free(2, 0.4)), []string{eventReleased}},
		{"a death, and the end of its lease", read(0, held(1, -9, 0.5)), read(1, free(1, -9)), []string{eventExpired}},
		{"a release by force", read(0, held(1, -9, 10)), read(1, free(2, -9)), []string{eventTakenAway}},
		{"a late renewal", read(0, held(1, -9, 7.6)), read(1, held(1, -9, 7.6)), []string{eventExpiring}},
		{"one that came after all", read(0, held(1, -9, 2)), read(1, held(1, -9, 16)), []string{eventRenewed}},
		{"the death of a holder", read(0, held(1, -9, 0.5)), read(1, lease(1, stateExpired, -9, 0.5)), []string{eventExpired}},
		{"what follows", read(0, lease(1, stateExpired, -9, -1)), read(1, held(2, 0.5, 15)), []string{eventTakenOver}},
		{"both", read(0, held(1, -9, 0.5)), read(1, held(2, 0.6, 15)), []string{eventExpired, eventTakenOver}},
		{"a release just before it", read(0, held(1, -9, 0.5)), read(1, held(2, 0.4, 15)), []string{eventReleased, eventTaken}},
		{"what may have been renewed and released", read(0, held(1, -9, 5)), read(60, held(2, 50, 70)), []string{eventReleased, eventTaken}},
		{"a dead holder that is forgotten now", read(0, lease(1, stateExpired, -9, -1)), read(1, free(1, -9)), nil},
		{"one that was forgotten before", read(0, forgotten(lease(1, stateExpired, -9, -1))), read(1, free(1, -9)), []string{eventFree}},
		{"one that was forgotten by who follows", read(0, forgotten(lease(1, stateExpired, -9, -1))), read(1, held(2, 0.5, 15)), []string{eventTakenOver}},
		{"one that was forgotten, and is not listed", read(0, forgotten(lease(1, stateExpired, -9, -1))), read(1), []string{eventFree}},
		{"a name that is kept", read(0, held(1, -9, 10)), read(1, lease(1, stateKept, -9, 5)), []string{eventKept}},
		{"the end of that", read(0, lease(1, stateKept, -9, 0.5)), read(1, free(1, -9)), []string{eventFree}},
		{"a wait", read(0, held(1, -9, 10)), read(1, wanted(held(1, -9, 10))), []string{eventWaitedFor}},
		{"a wait that goes on", read(0, wanted(held(1, -9, 10))), read(1, wanted(held(2, 0.5, 15))), []string{eventReleased, eventTaken}},
		{"one of two who share", read(0, shared(held(1, -9, 10)), shared(held(2, -9, 10))), read(1, shared(held(1, -9, 10))), []string{eventReleased}},
		{"the death of one", read(0, shared(held(1, -9, 10)), shared(held(2, -9, 0.5))), read(1, shared(held(1, -9, 10))), []string{eventExpired}},
		{"a third one", read(0, shared(held(1, -9, 10))), read(1, shared(held(1, -9, 10)), shared(held(3, 0, 10))), []string{eventTaken}},
		{"a session", read(0), read(1, session(7, 0)), []string{eventTaken}},
		{"another session", read(0, session(7, 1)), read(1, session(8, 0)), []string{eventReleased, eventTaken}},
		{"another waiter for a session", read(0, session(7, 1)), read(1, session(7, 2)), []string{eventWaitedFor}},
		{"sessions that are not shown any more", read(0, session(7, 0)), unread, nil},
		{"and shown again", unread, read(2, session(7, 0)), []string{eventHeld}},
	} {
		var got []string
		for _, c := range changes(test.before, settled(test.before, test.after)) {
			got = append(got, c.event)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: it says %q, want %q", test.what, got, test.want)
		}
	}
}
