package history

import "fmt"

// Line is a line that a holder wrote to a register.
type Line struct {
	Name    string
	Token   int64
	Process int

	// Limit is the limit of the writer's lock; see [Lock.Together]. It is 0 for an exclusive lock.
	Limit int
}

// CheckJournal checks the lines of a register, in the order of their commits. It returns an error if a line is stale:
// written after a line with a higher token for the same name, unless both locks could be held together. A token belongs
// to one process. Counting each token from its first to its last line, no more than the limit may be in use at a time.
func CheckJournal(journal []Line) error {
	type lock struct {
		name  string
		token int64
	}
	last := make(map[lock]int)
	for i, line := range journal {
		last[lock{line.Name, line.Token}] = i
	}
	highest := make(map[string]map[int]Line) // by name and limit
	inUse := make(map[string]map[int64]Line) // by name and token
	for i, line := range journal {
		if highest[line.Name] == nil {
			highest[line.Name], inUse[line.Name] = make(map[int]Line), make(map[int64]Line)
		}
		highest, inUse := highest[line.Name], inUse[line.Name]
		for limit, before := range highest {
			if line.Token < before.Token && (limit <= 1 || line.Limit <= 1 || (limit == Any) != (line.Limit == Any)) {
				return fmt.Errorf("line %d is stale: %+v came after %+v", i, line, before)
			}
		}
		if line.Token > highest[line.Limit].Token {
			highest[line.Limit] = line
		}
		if before, ok := inUse[line.Token]; ok && line.Process != before.Process {
			return fmt.Errorf("line %d has a token of somebody else: %+v came after %+v", i, line, before)
		}
		inUse[line.Token] = line
		for _, other := range inUse {
			if other.Limit > 1 && len(inUse) > other.Limit {
				return fmt.Errorf("line %d is of one too many: %+v", i, inUse)
			}
		}
		if last[lock{line.Name, line.Token}] == i {
			delete(inUse, line.Token)
		}
	}
	return nil
}

// Limit returns the limit of the lock of a name that had this token, or 0.
func (h *History) Limit(name string, token int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.locks {
		if k.name == name && k.token == token {
			return k.limit
		}
	}
	return 0
}
