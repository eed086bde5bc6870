package dberr_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

const (
	attemptTime  = 3 * time.Second  // the limit of one attempt
	conflictTime = 10 * time.Second // the limit for retries after conflicts
	longestPause = 200 * time.Millisecond
)

var errLeft = errors.New("the caller left")

// attempts calls try, which repeats f. It returns when f was called and when try returned, counted from the beginning.
func attempts(try func(f func(context.Context) error) error, f func(context.Context) error) (at []time.Duration, took time.Duration, err error) {
	began := time.Now()
	err = try(func(ctx context.Context) error {
		at = append(at, time.Since(began))
		return f(ctx)
	})
	return at, time.Since(began), err
}

// mustPauseLongerAndLonger checks the pauses between attempts that take no time themselves: they grow to 50 ms, and then with
// the time since the first attempt if it is patient.
func mustPauseLongerAndLonger(t *testing.T, at []time.Duration, patient bool) {
	t.Helper()
	for i, pause := 1, 5*time.Millisecond; i < len(at); i, pause = i+1, min(2*pause, 50*time.Millisecond) {
		if patient {
			pause = max(pause, at[i-1]/50)
		}
		if took := at[i] - at[i-1]; took < pause/2 || took > pause*3/2 {
			t.Errorf("the pause %d took %v; want about %v", i, took, pause)
		}
	}
}

func TestWhatFreesALockIsRetriedUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			const within = 5 * time.Second
			failure := failure(true, answered)
			at, took, err := attempts(
				func(f func(context.Context) error) error { return dberr.Retry(t.Context(), within, f) },
				func(context.Context) error { return failure })
			if !errors.Is(err, failure) {
				t.Error(err)
			}
			mustPauseLongerAndLonger(t, at, true)
			if took < within-longestPause || took > within+longestPause {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// The lease of a lock that is extended by hours may be without a server for hours.
func TestARetryForHoursIsNoBurden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at, took, err := attempts(
			func(f func(context.Context) error) error { return dberr.Retry(t.Context(), 8*time.Hour, f) },
			func(context.Context) error { return failure(true, false) })
		if err == nil || took < 8*time.Hour-4*time.Second {
			t.Errorf("it ended after %v: %v", took, err)
		}
		if most := int(8 * time.Hour / time.Second); len(at) > most {
			t.Errorf("it made %d attempts", len(at))
		}
	})
}

func TestWhatTakesALockIsRetriedWhileTheDatabaseUndoesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := failure(true, true)
		at, took, err := attempts(
			func(f func(context.Context) error) error {
				return dberr.RetryConflicts(t.Context(), dberr.ConflictTimeout, f)
			},
			func(context.Context) error { return failure })
		if !errors.Is(err, failure) {
			t.Error(err)
		}
		mustPauseLongerAndLonger(t, at, false)
		if took != conflictTime {
			t.Errorf("it took %v", took)
		}
	})
}

func TestWhatSucceedsOrIsOfNoUseIsNotRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		retry := func(f func(context.Context) error) error { return dberr.Retry(t.Context(), time.Hour, f) }
		conflicts := func(f func(context.Context) error) error {
			return dberr.RetryConflicts(t.Context(), dberr.ConflictTimeout, f)
		}
		for name, test := range map[string]struct {
			try     func(func(context.Context) error) error
			failure error
		}{
			"a success":                             {retry, nil},
			"a success of what takes a lock":        {conflicts, nil},
			"a failure for good":                    {retry, failure(false, true)},
			"an error of something else":            {retry, errLeft},
			"a conflict for good":                   {conflicts, failure(false, true)},
			"a lost answer of what may take a lock": {conflicts, failure(true, false)},
		} {
			at, took, err := attempts(test.try, func(context.Context) error { return test.failure })
			if len(at) != 1 || took != 0 || !errors.Is(err, test.failure) {
				t.Errorf("%s: %d attempts in %v: %v", name, len(at), took, err)
			}
		}
	})
}

func TestARetryEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			for name, try := range map[string]func(context.Context, time.Duration, func(context.Context) error) error{
				"retry":     dberr.Retry,
				"conflicts": dberr.RetryConflicts,
			} {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(left, func() { cancel(errLeft) })
				failure := failure(true, true)
				_, took, err := attempts(
					func(f func(context.Context) error) error { return try(ctx, time.Hour, f) },
					func(context.Context) error { return failure })
				if took != left || !errors.Is(err, failure) {
					t.Errorf("%s: it ended after %v with: %v", name, took, err)
				}
			}
		})
	}
}

func TestAnAttemptThatHangsIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := failure(true, false)
		at, took, err := attempts(
			func(f func(context.Context) error) error {
				return dberr.Retry(t.Context(), 2*attemptTime+time.Second, f)
			},
			func(ctx context.Context) error {
				<-ctx.Done()
				return failure
			})
		if !errors.Is(err, failure) || len(at) != 3 {
			t.Errorf("%d attempts: %v", len(at), err)
		}
		if took != 2*attemptTime+time.Second {
			t.Errorf("they took %v", took)
		}
		for i := range at[1:] {
			if between := at[i+1] - at[i]; between < attemptTime || between > attemptTime+longestPause {
				t.Errorf("attempt %d was given %v", i, between)
			}
		}
	})
}

// failure returns an error of a statement: transient or not, and with a known outcome or not.
func failure(transient, outcomeKnown bool) error {
	return &dberr.Error{Err: errors.New("the database failed"), Transient: transient, OutcomeKnown: outcomeKnown}
}
