//go:build !race

package model_test

import (
	"testing"

	"github.com/sqllock/sqllock/leasetable/internal/model"
)

var (
	claims   = model.Model{Processes: 2, Leases: 2, Tokens: 2, Lost: 1}
	again    = model.Model{Processes: 2, Leases: 1, Tokens: 3, Lost: 2}
	three    = model.Model{Processes: 3, Leases: 1, Tokens: 2}
	extend   = model.Model{Processes: 2, Leases: 1, Tokens: 2, Lost: 1, Extend: true}
	alone    = model.Model{Processes: 1, Leases: 2, Tokens: 2, Lost: 2, Extend: true}
	forced   = model.Model{Processes: 2, Leases: 1, Tokens: 2, Lost: 1, Forced: 1}
	setBack  = model.Model{Processes: 2, Leases: 1, Tokens: 2, Lost: 1, SetBack: 2}
	withHold = model.Model{Processes: 2, Leases: 1, Tokens: 2, Lost: 1, MinHold: 3}
)

func TestNoHistoryBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]model.Model{
		"claims": claims, "many claims": again, "three processes": three, "Extend": extend, "Extend of one process": alone,
		"forced release": forced, "the database's clock is set back": setBack, "minimum hold": withHold,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := m.Search()
			t.Log(found)
			if found.Broken != 0 {
				t.Error(found)
			}
		})
	}
}

func TestEachRuleThatIsLeftOutBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]struct {
		rule   model.Rule
		m      model.Model
		breaks model.Invariant
	}{
		"deadline from the answer":               {model.DeadlineFromSending, again, model.I3},
		"no margin":                              {model.Margin, again, model.I3},
		"told after its release":                 {model.ToldBeforeRelease, again, model.I3},
		"claim before the lease is confirmed":    {model.LeaseFirst, three, model.I3},
		"takeover from a lease that has expired": {model.OnlyGoneLeases, setBack, model.I3},
		"renewal of a row that is gone":          {model.RenewalNeedsRow, again, model.I3},
		"a lease that was renewed is ended":      {model.UnchangedRenewals, setBack, model.I3},
		"unchanged for less than a TTL":          {model.UnchangedForTTL, setBack, model.I3},
		"a takeover keeps the token":             {model.TakeoverBumpsToken, again, model.I12},
		"no orphan":                              {model.UnknownIsOrphan, again, model.I17},
		"an orphan's lease takes claims":         {model.OrphanRetires, claims, model.I3},
		"a lost lease is not told":               {model.LostLeaseIsTold, setBack, model.I3},
		"a forced release is not told":           {model.ForceIsTold, forced, model.I3},
		"release of any token":                   {model.ReleaseComparesToken, again, model.I3},
		"release repeated after the deadline":    {model.ReleaseKnowsItsEnd, again, model.I21},
		"and after that of its longer lease":     {model.ReleaseKnowsBothEnds, extend, model.I21},
		"an orphan is not kept":                  {model.OrphansAreKept, withHold, model.I22},
		"move from any lease":                    {model.MoveComparesLease, extend, model.I17},
		"ends with its old lease only":           {model.BothLeasesEndTheLock, extend, model.I3},
		"released on the shorter lease only":     {model.ReleaseOnBothLeases, extend, model.I17},
		"release without its position":           {model.ReleaseKeepsPosition, extend, model.I17},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left.m.LeftOut = left.rule
			found := left.m.Search()
			t.Log(found)
			if found.Broken != left.breaks {
				t.Errorf("the search ought to find that I%d is broken, and found: %v", left.breaks, found)
			}
		})
	}
}
