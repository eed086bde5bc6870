// Package dashboard reads the panels of a dashboard of Grafana.
package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Panel is a panel with lines.
type Panel struct {
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []Target

	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []struct{ Value *float64 } }
		}
	}
}

// Target is a query of a panel.
type Target struct{ Expr, LegendFormat string }

// Read returns the panels of the dashboard in a file.
func Read(file string) ([]Panel, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller's file
	if err != nil {
		return nil, err
	}
	var dashboard struct{ Panels []Panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return dashboard.Panels, nil
}

// Query returns the expression as Grafana sends it if all instances are chosen.
func (t Target) Query() string {
	return strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(t.Expr)
}

var placeholder = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// Legend returns the name of a series with these labels.
func (t Target) Legend(labels map[string]string) string {
	return strings.TrimSpace(placeholder.ReplaceAllStringFunc(t.LegendFormat, func(match string) string {
		return labels[placeholder.FindStringSubmatch(match)[1]]
	}))
}

// Threshold returns the value of the line in the panel, if there is one.
func (p Panel) Threshold() (value float64, has bool) {
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		if step.Value != nil {
			return *step.Value, true
		}
	}
	return 0, false
}
