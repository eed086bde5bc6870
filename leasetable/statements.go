package leasetable

import (
	"embed"
	"fmt"

	"github.com/sqllock/sqllock/schema"
)

//go:embed sql
var files embed.FS

// statement names a statement; every dialect has a file of that name.
type statement string

const (
	grant       statement = "grant"
	renew       statement = "renew"
	end         statement = "end"
	acquire     statement = "acquire"
	look        statement = "look"
	bury        statement = "bury"
	buryStill   statement = "bury_still"
	takeover    statement = "takeover"
	release     statement = "release"
	pass        statement = "pass"
	disown      statement = "disown"
	guard       statement = "guard"
	list        statement = "list"
	purge       statement = "purge"
	force       statement = "force"
	want        statement = "want"
	heldBy      statement = "held_by"
	acquireMany statement = "acquire_many"
	releaseMany statement = "release_many"
	takenMany   statement = "taken_many" // MySQL only
	heldMany    statement = "held_many"  // MySQL only
	tell        statement = "tell"       // SQLite only
)

// loadStatements reads the statements of a dialect and puts in the names of the tables.
func loadStatements(d schema.Dialect, t schema.Tables) (map[statement]string, error) {
	texts := make(map[statement]string)
	names := []statement{grant, renew, end, acquire, look, bury, buryStill, takeover, release, pass, disown, guard, list, purge, force, want, heldBy, acquireMany, releaseMany}
	switch d {
	case schema.SQLite:
		names = append(names, tell)
	case schema.MySQL:
		names = append(names, takenMany, heldMany)
	case schema.Postgres:
	}
	for _, s := range names {
		text, err := files.ReadFile(fmt.Sprintf("sql/%s/%s.sql", d, s))
		if err != nil {
			return nil, err
		}
		texts[s] = t.Rewrite(d, string(text))
	}
	return texts, nil
}
