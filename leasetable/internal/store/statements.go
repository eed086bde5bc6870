package store

import (
	"embed"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/schema"
)

// files are the statements. What one does, its parameters and what it keeps stand in the file in sql/postgres, or if there is
// none in sql/sqlite, or else in sql/mysql; the other files with its name say only what differs. What several statements of
// a dialect have in common is a file in its folder parts, and stands in a statement as its name in braces.
//
//go:embed sql
var files embed.FS

// Statement is the name of a statement: the name of its file in the directory of each dialect that has it.
type Statement string

const (
	openLease       Statement = "open_lease"
	accepts         Statement = "accepts"
	renew           Statement = "renew"
	endLease        Statement = "end_lease"
	acquire         Statement = "acquire"
	acquireFree     Statement = "acquire_free" // MySQL only
	insert          Statement = "insert"       // PostgreSQL only
	readState       Statement = "read_state"
	expire          Statement = "expire"
	expireUnchanged Statement = "expire_unchanged"
	takeover        Statement = "takeover"
	release         Statement = "release"
	handOff         Statement = "hand_off"
	releaseByLease  Statement = "release_by_lease"
	guard           Statement = "guard"
	list            Statement = "list"
	expired         Statement = "expired"
	force           Statement = "force"
	noteWaiter      Statement = "note_waiter"
	removeWaiter    Statement = "remove_waiter"
	namesOf         Statement = "names_of"
	stillHeld       Statement = "still_held"
	setMetadata     Statement = "set_metadata"
	move            Statement = "move"
	adopt           Statement = "adopt"
	acquireMany     Statement = "acquire_many"
	releaseMany     Statement = "release_many"

	acquireUnlocked Statement = "acquire_unlocked" // PostgreSQL only, like the next one
	releaseUnlocked Statement = "release_unlocked"

	unlocked       Statement = "unlocked" // not SQLite, like the next ones
	unlockedLease  Statement = "unlocked_lease"
	unlockedPermit Statement = "unlocked_permit"

	freeMany    Statement = "free_many" // MySQL only, like the next ones up to guardGalera
	knownMany   Statement = "known_many"
	takenMany   Statement = "taken_many"
	heldMany    Statement = "held_many"
	insertMany  Statement = "insert_many"
	guardGalera Statement = "guard_galera"
	notifyLease Statement = "notify_lease" // SQLite only

	acquireAtOnce Statement = "acquire_at_once" // MariaDB only, like the next one
	releaseAtOnce Statement = "release_at_once"

	readPermits         Statement = "read_permits"
	listPermits         Statement = "list_permits"
	releasePermit       Statement = "release_permit"
	clearPermit         Statement = "clear_permit"
	guardPermit         Statement = "guard_permit"
	convert             Statement = "convert"
	bumpToken           Statement = "bump_token"
	noteExclusiveWaiter Statement = "note_exclusive_waiter"
	forcePermits        Statement = "force_permits"
	acquirePermit       Statement = "acquire_permit" // PostgreSQL only: it changes two tables in one statement
	firstPermit         Statement = "first_permit"   // not PostgreSQL, like the next ones
	nextPermit          Statement = "next_permit"
	addPermit           Statement = "add_permit"
	notifyPermits       Statement = "notify_permits"
	clearPermits        Statement = "clear_permits"
)

// Prepared is a statement in the form that a driver takes.
type Prepared struct {
	Text  string
	order []int // MySQL: for each placeholder, the number of its argument, from 0
}

// numbered matches a comment, and a placeholder with a number. MySQL knows only placeholders without.
var numbered = regexp.MustCompile(`(?m)^--.*$|\?\d+`)

var comment = regexp.MustCompile(`(?m)^--.*$`)

// place matches the place of a part of a statement.
var place = regexp.MustCompile(`\{\w+\}`)

// loadStatements reads the statements of a dialect, and inserts their parts and the names of the tables. On MySQL it takes
// the numbers out of the placeholders: the arguments of a statement are the same, in the same order, in all dialects.
func loadStatements(d schema.Dialect, t schema.Tables) (map[Statement]Prepared, error) {
	directory := path.Join("sql", string(d))
	texts, err := readFiles(directory)
	if err != nil {
		return nil, err
	}
	parts, err := readFiles(path.Join(directory, "parts"))
	if err != nil {
		return nil, err
	}
	all := make(map[Statement]Prepared)
	for name, text := range texts {
		st := Prepared{Text: t.Rewrite(d, insertParts(text, parts))}
		if d == schema.MySQL {
			st.Text = numbered.ReplaceAllStringFunc(st.Text, func(placeholder string) string {
				if strings.HasPrefix(placeholder, "--") {
					return strings.ReplaceAll(placeholder, "?", "")
				}
				n, _ := strconv.Atoi(placeholder[1:]) // it is a number
				st.order = append(st.order, n-1)
				return "?"
			})
		}
		all[Statement(name)] = st
	}
	return all, nil
}

// readFiles returns the texts of the files of a directory by their names.
func readFiles(directory string) (map[string]string, error) {
	entries, err := files.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := files.ReadFile(path.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts[strings.TrimSuffix(entry.Name(), ".sql")] = string(text)
	}
	return texts, nil
}

// insertParts replaces the names of parts in braces by their texts without comments. Other names in braces stay, for
// statementText.
func insertParts(text string, parts map[string]string) string {
	return place.ReplaceAllStringFunc(text, func(name string) string {
		part, ok := parts[strings.Trim(name, "{}")]
		if !ok {
			return name
		}
		return insertParts(strings.TrimSpace(comment.ReplaceAllString(part, "")), parts)
	})
}
