package leasetable

import (
	"embed"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/schema"
)

//go:embed sql
var files embed.FS

// statement is the name of a statement: the name of its file in the directory of each dialect that has it.
type statement string

const (
	openLease       statement = "open_lease"
	renew           statement = "renew"
	endLease        statement = "end_lease"
	acquire         statement = "acquire"
	acquireFree     statement = "acquire_free" // MySQL only
	insert          statement = "insert"       // PostgreSQL only
	readState       statement = "read_state"
	expire          statement = "expire"
	expireUnchanged statement = "expire_unchanged"
	takeover        statement = "takeover"
	release         statement = "release"
	handOff         statement = "hand_off"
	releaseByLease  statement = "release_by_lease"
	guard           statement = "guard"
	list            statement = "list"
	purge           statement = "purge"
	force           statement = "force"
	noteWaiter      statement = "note_waiter"
	removeWaiter    statement = "remove_waiter"
	namesOf         statement = "names_of"
	setMetadata     statement = "set_metadata"
	move            statement = "move"
	adopt           statement = "adopt"
	acquireMany     statement = "acquire_many"
	releaseMany     statement = "release_many"

	acquireKnown statement = "acquire_known" // PostgreSQL and MariaDB only, like the next one
	releaseKnown statement = "release_known"

	releaseAsync      statement = "release_async" // PostgreSQL only, like the next ones
	acquireUnlocked   statement = "acquire_unlocked"
	releaseUnlocked   statement = "release_unlocked"
	releaseKnownAsync statement = "release_known_async"

	unlocked       statement = "unlocked" // not SQLite, like the next ones
	unlockedLease  statement = "unlocked_lease"
	unlockedPermit statement = "unlocked_permit"

	freeMany    statement = "free_many" // MySQL only, like the next ones up to guardGalera
	knownMany   statement = "known_many"
	takenMany   statement = "taken_many"
	heldMany    statement = "held_many"
	insertMany  statement = "insert_many"
	guardGalera statement = "guard_galera"
	notifyLease statement = "notify_lease" // SQLite only

	acquireAtOnce statement = "acquire_at_once" // MariaDB only, like the next one
	releaseAtOnce statement = "release_at_once"

	readPermits         statement = "read_permits"
	listPermits         statement = "list_permits"
	releasePermit       statement = "release_permit"
	clearPermit         statement = "clear_permit"
	guardPermit         statement = "guard_permit"
	convert             statement = "convert"
	bumpToken           statement = "bump_token"
	noteExclusiveWaiter statement = "note_exclusive_waiter"
	forcePermits        statement = "force_permits"
	acquirePermit       statement = "acquire_permit" // PostgreSQL only: it changes two tables in one statement
	firstPermit         statement = "first_permit"   // not PostgreSQL, like the next ones
	nextPermit          statement = "next_permit"
	addPermit           statement = "add_permit"
	notifyPermits       statement = "notify_permits"
	clearPermits        statement = "clear_permits"
)

// prepared is a statement in the form that a driver takes.
type prepared struct {
	text  string
	order []int // MySQL: for each placeholder, the number of its argument, from 0
}

// numbered matches a placeholder with a number. MySQL knows only placeholders without.
var numbered = regexp.MustCompile(`\?\d+`)

// loadStatements reads the statements of a dialect and inserts the names of the tables. On MySQL it takes the numbers
// out of the placeholders: the arguments of a statement are the same, in the same order, in all dialects.
func loadStatements(d schema.Dialect, t schema.Tables) (map[statement]prepared, error) {
	directory := path.Join("sql", string(d))
	entries, err := files.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	all := make(map[statement]prepared)
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
		st := prepared{text: t.Rewrite(d, string(text))}
		if d == schema.MySQL {
			st.text = numbered.ReplaceAllStringFunc(st.text, func(placeholder string) string {
				n, _ := strconv.Atoi(placeholder[1:]) // it is a number
				st.order = append(st.order, n-1)
				return "?"
			})
		}
		all[statement(strings.TrimSuffix(entry.Name(), ".sql"))] = st
	}
	return all, nil
}
