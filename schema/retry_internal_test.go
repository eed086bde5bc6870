package schema

import (
	"fmt"
	"testing"
)

// stateError is an error as drivers of PostgreSQL return it.
type stateError string

func (e stateError) Error() string    { return "SQLSTATE " + string(e) }
func (e stateError) SQLState() string { return string(e) }

func TestALostRaceToCreateIsTriedAgain(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{"23505": true, "42P07": true, "42710": true, "42501": false} {
		if got := passing(fmt.Errorf("schema: apply version 1: %w", stateError(state))); got != want {
			t.Errorf("%s is tried again: %t, want %t", state, got, want)
		}
	}
}
