//go:build !race

package model_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/session/internal/model"
)

var (
	tries      = model.User{}
	triesShare = model.User{Shared: true}
	waits      = model.User{Waits: true}
	waitsShare = model.User{Waits: true, Shared: true}

	twoNames   = model.Model{Users: []model.User{tries, tries}, Names: 2, Errors: true, Kills: true, Leaves: true}
	gates      = model.Model{Users: []model.User{waits, waits}, Names: 1, Gate: true, Errors: true, Kills: true, Leaves: true}
	lingers    = model.Model{Users: []model.User{waits, waits}, Names: 1, Gate: true, Kills: true, Lingers: true}
	share      = model.Model{Users: []model.User{waits, waitsShare}, Names: 1, Gate: true, Errors: true, Kills: true, Leaves: true, Passes: 1}
	shares     = model.Model{Users: []model.User{waits, waitsShare, waitsShare}, Names: 1, Gate: true, Errors: true, Leaves: true, Passes: 2}
	shareTry   = model.Model{Users: []model.User{waits, triesShare}, Names: 1, Gate: true, Errors: true, Kills: true, Leaves: true}
	sharesTry  = model.Model{Users: []model.User{waits, waitsShare, triesShare}, Names: 1, Gate: true, Errors: true, Leaves: true, Passes: 1}
	deadlines  = model.Model{Users: []model.User{waits, tries}, Names: 1, Gate: true, Time: true, Errors: true, Leaves: true}
	mysql      = model.Model{Users: []model.User{waits, waits}, Names: 1, Errors: true, Kills: true, Leaves: true, Lingers: true}
	mysqlThree = model.Model{Users: []model.User{waits, waits, tries}, Names: 1, Errors: true, Kills: true, Leaves: true}
	mysqlTime  = model.Model{Users: []model.User{waits, tries}, Names: 2, Time: true, Errors: true, Leaves: true}
	mysqlLate  = model.Model{Users: []model.User{waits, tries}, Names: 1, Time: true, Lingers: true}
)

func TestNoHistoryBreaksAnInvariant(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]model.Model{
		"tries for two names": twoNames, "waits": gates, "sessions that linger": lingers, "a share is waited for": share,
		"two shares are waited for": shares, "a share is tried for": shareTry, "shares of both kinds": sharesTry, "deadlines": deadlines,
		"MySQL": mysql, "MySQL, three processes": mysqlThree, "MySQL, deadlines": mysqlTime, "MySQL, late statements": mysqlLate,
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
		"told after its release":                     {model.ToldBeforeRelease, twoNames, model.I3},
		"told after its session was closed":          {model.ToldBeforeClosed, twoNames, model.I3},
		"deadline from the answer":                   {model.DeadlineFromSending, mysqlTime, model.I3},
		"no margin":                                  {model.Margin, mysqlTime, model.I3},
		"a waiter is trusted as a holder":            {model.WaiterIsTrustedBriefly, deadlines, model.I3},
		"and before the server has kept its session": {model.KeepIsAwaited, deadlines, model.I3},
		"a wait on a shared session":                 {model.WaitHoldsNothing, twoNames, model.I3},
		"what may be had twice is kept":              {model.GivesAllBack, gates, model.I40},
		"a lock outlives its session":                {model.LocksEndWithSession, twoNames, model.I3},
		"an uncertain session is used again":         {model.UncertainEnds, twoNames, model.I43},
		"an error is taken for not held":             {model.ErrorGivesBack, twoNames, model.I43},
		"an error gives everything back":             {model.RecoversItsKeys, twoNames, model.I3},
		"an error of a wait is taken for not held":   {model.ErrorForgets, gates, model.I43},
		"a caller that left keeps its key":           {model.LeaverGivesBack, twoNames, model.I43},
		"a waiter that left keeps its gate":          {model.LeaverForgets, gates, model.I43},
		"and takes it for its own later":             {model.ForgetsGate, gates, model.I43},
		"no try after a timeout":                     {model.TriesAfterTimeout, gates, model.I43},
		"the gate is kept with the lock":             {model.GateIsGivenBack, gates, model.I43},
		"the gate is given back after a slice":       {model.GateIsKept, shareTry, model.I47},
		"a share is had past the gate":               {model.ShareTriesGate, shareTry, model.I47},
		"the gate before the share":                  {model.KeyBeforeGate, shareTry, model.I43},
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
