package database

import (
	"context"
	"database/sql"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// mostSigned is how much PostgreSQL keeps of an application_name, without the "sqllock/" before it.
const mostSigned = 63 - len("sqllock/")

// Signed returns the text that a session with a lock calls itself: the owner, and the lock's name where that is
// possible. The server itself knows only a hash of the name.
func (db *Database) Signed(owner, name string) string {
	text := owner + signature(name)
	inTheWay := func(r rune) bool {
		return r < ' ' || r > '~' || db.Dialect == schema.MySQL && strings.ContainsRune(",:", r) // see connectMySQL
	}
	if len(text) > mostSigned || strings.ContainsFunc(name, inTheWay) {
		return owner
	}
	return text
}

func signature(name string) string { return " (" + name + ")" }

// Unsigned removes the lock's name from the owner text of its session.
func Unsigned(name string, h sqllock.Holder) sqllock.Holder {
	h.Owner = strings.TrimSuffix(h.Owner, signature(name))
	return h
}

// TellNames fills in the names of session locks from their owner texts, if the server's name of the lock matches.
func (db *Database) TellNames(ctx context.Context, locks []SessionLock) error {
	var serverName func(name string) string
	for i := range locks {
		l := &locks[i]
		for at := range l.Owner {
			if !strings.HasPrefix(l.Owner[at:], " (") || !strings.HasSuffix(l.Owner, ")") {
				continue
			}
			if serverName == nil {
				var err error
				if serverName, err = db.ServerNames(ctx); err != nil {
					return err
				}
			}
			if name := l.Owner[at+2 : len(l.Owner)-1]; serverName(name) == l.ServerName {
				l.Name, l.Owner = name, l.Owner[:at]
				break
			}
		}
	}
	return nil
}

// ServerNames returns a function that computes the server's name of a session lock from its name. It is a hash and
// cannot be reversed.
func (db *Database) ServerNames(ctx context.Context) (func(name string) string, error) {
	if db.Dialect == schema.Postgres {
		return func(name string) string { return keyName(pg.Key(name), false) }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	var database sql.NullString
	err := db.GetContext(ctx, &database, "SELECT DATABASE()")
	return func(name string) string { return mysql.ServerName(database.String, name) }, err
}
