//go:build !race

package seeds

import "time"

// See race.go.
const (
	fewer    = 1
	mostTime = time.Hour
)
