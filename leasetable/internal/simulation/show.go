package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// show returns an answer of a store for people.
func (p *process) show(answer any) string {
	switch a := answer.(type) {
	case store.State:
		return p.showState(a)
	case []store.State:
		all := make([]string, len(a))
		for i, s := range a {
			all[i] = string(s.Name) + " " + p.showState(s)
		}
		return strings.Join(all, "; ")
	case store.Result:
		if a.Token == 0 {
			return "no"
		}
		return fmt.Sprintf("token %d%s", a.Token, map[bool]string{true: ", somebody waits"}[a.HasWaiter])
	case nothing, time.Time:
		return "done"
	case store.Turn:
		return "open"
	}
	return fmt.Sprintf("%+v", answer)
}

func (p *process) showState(s store.State) string {
	var text strings.Builder
	fmt.Fprintf(&text, "token %d", s.Token)
	switch lasts := time.Duration(s.RemainingUS) * time.Microsecond; {
	case s.LeaseID == nil && lasts > 0:
		fmt.Fprintf(&text, ", kept for %v", lasts)
	case s.LeaseID == nil && !s.Limit.Valid:
		text.WriteString(", free")
	case s.LeaseID != nil && s.Gone:
		fmt.Fprintf(&text, ", %s, which is gone", p.id(s.LeaseID))
	case s.LeaseID != nil:
		fmt.Fprintf(&text, ", %s for %v", p.id(s.LeaseID), lasts)
	}
	for _, permit := range s.Permits {
		fmt.Fprintf(&text, " [%s]", p.showState(permit))
	}
	return text.String()
}
