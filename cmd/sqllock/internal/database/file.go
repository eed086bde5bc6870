package database

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// mostOfFile bounds how much of a file is read: it may be the wrong file, even an endless one.
const mostOfFile = 64 << 10

const fileForms = "it is a file whose first line is the name of a database, or that has a line SQLLOCK_DB=…"

// readDatabaseFile returns the database name in a file.
//
// Its errors contain neither a part of the file nor its name: the user may have given the URL instead of a file name.
func readDatabaseFile(name string) (string, error) {
	if name == "" {
		return "", errors.New("--db-file is empty; " + fileForms)
	}
	text, err := readStart(name)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return "", fmt.Errorf("the file of --db-file cannot be read: %w; %s", err, fileForms)
	}
	named, err := databaseIn(text)
	if err != nil {
		return "", fmt.Errorf("the file of --db-file %w; %s", err, fileForms)
	}
	return named, nil
}

// isFile reports whether name is that of a file that can be read again, unlike a pipe.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// password returns the password that the file has now for the user and the server of the start, or the former one if the
// file has none any more. The one of a long run may be replaced, or be a token that expires.
func (f *Flags) password(start *Database, former string) string {
	if !isFile(f.file) {
		return former
	}
	named, err := readDatabaseFile(f.file)
	if err != nil {
		return former
	}
	db, err := openURL(named)
	if err != nil {
		return former
	}
	defer db.Close()
	if was, is := start.postgres, db.postgres; was != nil && is != nil && was.User == is.User && was.Host == is.Host {
		return is.Password
	}
	if was, is := start.mysql, db.mysql; was != nil && is != nil && was.User == is.User && was.Addr == is.Addr {
		return is.Passwd
	}
	return former
}

func readStart(name string) (string, error) {
	file, err := os.Open(name) //nolint:gosec // the user names the file
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, mostOfFile+1))
	if err == nil && len(text) > mostOfFile {
		err = fmt.Errorf("it has more than %d bytes", mostOfFile)
	}
	return string(text), err
}

var errExposed = errors.New("every user of this machine can read the file of --db-file, and the password in it: chmod o-r would do")

// secret matches the part of a database name, after the scheme of a URL, that has a password.
var secret = regexp.MustCompile(`(?i):.*@|password\s*=`)

// exposed reports whether every user can read a file with a password in it. sqllock only warns: secrets mounted into a
// container are such files. Windows has no real permission bits.
func exposed(file, named string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0 && runtime.GOOS != "windows" &&
		secret.MatchString(named[len(scheme.FindString(named)):])
}

// variable matches a line that sets a variable. PostgreSQL keywords are in lower case.
var variable = regexp.MustCompile(`^(?:export\s+)?([A-Z_][A-Z0-9_]*)\s*=\s*(.*)$`)

// databaseIn finds the database name in the text of a file: in the line that sets SQLLOCK_DB, the last one as in a
// shell, or else in the first line that is neither empty nor a comment.
func databaseIn(text string) (named string, err error) {
	first, found := "", false
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) { // editors on Windows write it first
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if first == "" {
			first = line
		}
		if v := variable.FindStringSubmatch(line); v != nil && v[1] == "SQLLOCK_DB" {
			named, found = unquote(v[2]), true
		}
	}
	switch {
	case found && named == "":
		return "", errors.New("has an empty SQLLOCK_DB")
	case found:
		return named, nil
	case first == "":
		return "", errors.New("is empty")
	case variable.MatchString(first): // another kind of file, maybe with other secrets
		return "", errors.New("sets variables, but not SQLLOCK_DB")
	}
	return first, nil
}

// Parts of a value. Text between quotes is used literally.
var (
	inQuotes = regexp.MustCompile(`^(?:"([^"]*)"|'([^']*)')(?:\s+#.*)?$`)
	comment  = regexp.MustCompile(`(?:^|\s+)#.*$`)
)

// unquote removes the quotes around a value, and the comment behind it.
func unquote(value string) string {
	if v := inQuotes.FindStringSubmatch(value); v != nil {
		return v[1] + v[2]
	}
	return comment.ReplaceAllString(value, "")
}
