package history

import "fmt"

// Line is what a holder wrote to a register.
type Line struct {
	Name    string
	Token   int64
	Process int
}

// CheckJournal looks at the lines of a register, in the order of their commits. It returns an error
// if one is stale: written after a line of a higher token for the same name. One token is one
// process's.
func CheckJournal(journal []Line) error {
	last := make(map[string]Line)
	for i, line := range journal {
		before := last[line.Name]
		switch {
		case line.Token < before.Token:
			return fmt.Errorf("line %d is stale: %+v came after %+v", i, line, before)
		case line.Token == before.Token && line.Process != before.Process:
			return fmt.Errorf("line %d has a token of somebody else: %+v came after %+v", i, line, before)
		}
		last[line.Name] = line
	}
	return nil
}
