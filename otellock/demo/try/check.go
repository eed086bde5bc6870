package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/otellock/demo/internal/dashboard"
	"github.com/sqllock/sqllock/otellock/demo/internal/picture"
	"github.com/sqllock/sqllock/otellock/demo/internal/prom"
	"github.com/sqllock/sqllock/otellock/demo/internal/workload"
)

// run is the time for which the demo ran, and the Prometheus that knows what happened.
type run struct {
	prometheus  *prom.Server
	began, done time.Time
}

// causes are the times of what each alert is about, since the demo began.
var causes = map[string]time.Duration{
	"SqllockLockLost":       workload.Taken,
	"SqllockRenewalOverdue": workload.Blocked,
	"SqllockRenewalsFail":   workload.Blocked,
	"SqllockRequestsFail":   workload.Blocked,
	"SqllockWaitStuck":      workload.Stuck + 5*time.Minute,
	"SqllockWaitTooLong":    workload.GaveUp,
}

var alertName = regexp.MustCompile(`(?m)^\s*- alert: (\w+)`)

// checkAlerts checks when the alerts of the file fired, and returns a panel of that.
func (r run) checkAlerts(ctx context.Context, rules string) (panel picture.Panel, err error) {
	text, err := os.ReadFile(rules) //nolint:gosec // the user's choice
	if err != nil {
		return panel, err
	}
	panel.Title = "Alerts that fire"
	var errs []error
	for i, match := range alertName.FindAllStringSubmatch(string(text), -1) {
		name := match[1]
		cause, known := causes[name]
		firing, err := r.prometheus.Range(ctx, fmt.Sprintf(`max(ALERTS{alertname=%q, alertstate="firing"}) * %d`, name, i+1), r.began, r.done)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !known:
			errs = append(errs, fmt.Errorf("%s has no cause here", name))
		case len(firing) == 0:
			errs = append(errs, fmt.Errorf("%s has not fired", name))
		default:
			at := firing[0].Points[0].At.Sub(r.began)
			log.Printf("%s: cause at %v, fired at %v", name, cause, at.Round(time.Second))
			if at < cause || at > cause+time.Minute {
				errs = append(errs, fmt.Errorf("%s fired at %v, and its cause was at %v", name, at, cause))
			}
			panel.Lines = append(panel.Lines, picture.Line{Name: name, Points: firing[0].Points})
		}
	}
	return panel, errors.Join(errs...)
}

// checkPanels checks that each query of each panel has data, and returns the panels with it.
func (r run) checkPanels(ctx context.Context, panels []dashboard.Panel) (drawn []picture.Panel, err error) {
	var errs []error
	for _, panel := range panels {
		out := picture.Panel{Title: panel.Title, Unit: panel.FieldConfig.Defaults.Unit}
		if threshold, has := panel.Threshold(); has {
			out.Threshold = &threshold
		}
		for _, target := range panel.Targets {
			series, err := r.prometheus.Range(ctx, target.Query(), r.began, r.done)
			if err != nil {
				errs = append(errs, err)
			}
			if len(series) == 0 {
				errs = append(errs, fmt.Errorf("panel %q: no data for %s", panel.Title, target.Query()))
			}
			for _, one := range series {
				out.Lines = append(out.Lines, picture.Line{Name: target.Legend(one.Labels), Points: one.Points})
			}
		}
		log.Printf("panel %q: %d lines", panel.Title, len(out.Lines))
		slices.SortStableFunc(out.Lines, func(a, b picture.Line) int { return strings.Compare(a.Name, b.Name) })
		drawn = append(drawn, out)
	}
	return drawn, errors.Join(errs...)
}
