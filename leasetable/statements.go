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
	acquireFree statement = "acquire_free" // MySQL only
	insert      statement = "insert"       // PostgreSQL only
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
	wantNoMore  statement = "want_no_more"
	namesOf     statement = "names_of"
	note        statement = "note"
	move        statement = "move"
	adopt       statement = "adopt"
	acquireMany statement = "acquire_many"
	releaseMany statement = "release_many"

	acquireKnown statement = "acquire_known" // PostgreSQL and MariaDB only, as the next one
	releaseKnown statement = "release_known"

	releaseAsync      statement = "release_async" // PostgreSQL only, as the next ones
	acquireUnlocked   statement = "acquire_unlocked"
	releaseUnlocked   statement = "release_unlocked"
	releaseKnownAsync statement = "release_known_async"

	unlocked      statement = "unlocked" // not SQLite, as the next ones
	unlockedLease statement = "unlocked_lease"
	unlockedPlace statement = "unlocked_place"

	freeMany    statement = "free_many" // MySQL only, as the next ones
	knownMany   statement = "known_many"
	takenMany   statement = "taken_many"
	heldMany    statement = "held_many"
	insertMany  statement = "insert_many"
	guardGalera statement = "guard_galera"
	tell        statement = "tell" // SQLite only

	acquireAtOnce statement = "acquire_at_once" // MySQL only, where it is MariaDB, as the next one
	releaseAtOnce statement = "release_at_once"

	lookPlaces   statement = "look_places"
	listPlaces   statement = "list_places"
	releasePlace statement = "release_place"
	clearPlace   statement = "clear_place"
	guardPlace   statement = "guard_place"
	convert      statement = "convert"
	raise        statement = "raise"
	wantAlone    statement = "want_alone"
	forcePlaces  statement = "force_places"
	acquirePlace statement = "acquire_place" // PostgreSQL only, which changes two tables in one statement
	firstPlace   statement = "first_place"   // not PostgreSQL, as the next ones
	nextPlace    statement = "next_place"
	addPlace     statement = "add_place"
	tellPlaces   statement = "tell_places"
	clearPlaces  statement = "clear_places"
)

// loadStatements reads the statements of a dialect and puts in the names of the tables.
func loadStatements(d schema.Dialect, t schema.Tables) (map[statement]string, error) {
	texts := make(map[statement]string)
	names := []statement{grant, renew, end, acquire, look, bury, buryStill, takeover, release, pass, disown, guard, list, purge, force, want, wantNoMore, namesOf, note, move, adopt, acquireMany, releaseMany}
	names = append(names, lookPlaces, listPlaces, releasePlace, clearPlace, guardPlace, convert, raise, wantAlone, forcePlaces)
	switch d {
	case schema.SQLite:
		names = append(names, tell, firstPlace, nextPlace, addPlace, tellPlaces, clearPlaces)
	case schema.MySQL:
		names = append(names, acquireFree, freeMany, knownMany, takenMany, heldMany, insertMany, guardGalera, acquireAtOnce, releaseAtOnce, acquireKnown, releaseKnown, firstPlace, nextPlace, addPlace, tellPlaces, clearPlaces)
	case schema.Postgres:
		names = append(names, insert, releaseAsync, acquireUnlocked, releaseUnlocked, acquireKnown, releaseKnown, releaseKnownAsync, acquirePlace)
	}
	if d != schema.SQLite {
		names = append(names, unlocked, unlockedLease, unlockedPlace)
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
