package database

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// How many bytes of a session's name for itself, after the "sqllock/" before it, the servers keep: 63 in all of an
// application_name. All attributes of a connection to MySQL or MariaDB share 512 bytes; the driver has some, too.
const (
	mostSignedPostgres = 63 - len("sqllock/")
	mostSignedMySQL    = 200

	leastOwner = 16 // a longer owner is shortened to no less, so that the name fits
)

// Signed returns the text that a session with a lock calls itself: the owner, and the lock's name unless it is too
// long. The server itself knows only a hash of the name.
func (db *Database) Signed(owner, name string) string {
	most, signed := mostSignedPostgres, signature(escaped(name, ""))
	if db.Dialect == schema.MySQL {
		most, signed = mostSignedMySQL, signature(escaped(name, inTheWayMySQL))
	}
	switch room := most - len(signed); {
	case len(owner) <= room:
		return owner + signed
	case room >= leastOwner:
		return shortened(owner, room) + signed
	}
	return owner
}

// inTheWayMySQL separates attributes; see connectMySQL.
const inTheWayMySQL = ",:"

func signature(name string) string { return " (" + name + ")" }

// escaped percent-encodes a name that is not all printable ASCII, or has one of the bytes in the way.
func escaped(name, inTheWay string) string {
	odd := func(c byte) bool { return c < ' ' || c > '~' || strings.IndexByte(inTheWay, c) >= 0 }
	var b strings.Builder
	encoded := false
	for _, c := range []byte(name) {
		if odd(c) || c == '%' {
			encoded = encoded || odd(c)
			_, _ = fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if !encoded {
		return name
	}
	return b.String()
}

// shortened replaces the middle of an owner, which has neither its program nor its process, by a ~.
func shortened(owner string, size int) string {
	const end = 6
	return strings.ToValidUTF8(owner[:size-end-1]+"~"+owner[len(owner)-end:], "")
}

// Unsigned removes the lock's name from the owner text of its session.
func Unsigned(name string, h sqllock.Holder) sqllock.Holder {
	for _, form := range []string{name, escaped(name, ""), escaped(name, inTheWayMySQL)} {
		if owner, signed := strings.CutSuffix(h.Owner, signature(form)); signed {
			h.Owner = owner
			break
		}
	}
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
			if name, found := nameOf(l.Owner[at+2:len(l.Owner)-1], l.ServerName, serverName); found {
				l.Name, l.Owner = name, l.Owner[:at]
				break
			}
		}
	}
	return nil
}

// nameOf returns the name that a session has signed with, escaped or not, if it is that of the lock.
func nameOf(signed, server string, serverName func(name string) string) (string, bool) {
	plain, err := url.PathUnescape(signed)
	switch {
	case serverName(signed) == server:
		return signed, true
	case err == nil && serverName(plain) == server:
		return plain, true
	}
	return "", false
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
