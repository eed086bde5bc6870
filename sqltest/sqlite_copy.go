//go:build !sqltest_no_sqlite

package sqltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

var (
	// sqliteFiles has the content of the templates' files, by the template's name.
	sqliteFiles memo[[]byte]
	// sqliteRun has the folder for the files of this run, by that of the state.
	sqliteRun memo[*instance]
)

// sqlite returns the content of the template's file, which is made first if this run does not have it.
func (t *Template) sqlite() ([]byte, error) {
	name, err := t.name("")
	if err != nil {
		return nil, err
	}
	return sqliteFiles.get(name, func() ([]byte, error) { return t.sqliteOnce(name) })
}

// sqliteOnce reads the template's file from the folder that the processes of a run share, and makes it if it is not there.
// Where there is no such folder, each process makes its own.
func (t *Template) sqliteOnce(name string) ([]byte, error) {
	if !supported {
		return t.buildSQLite("")
	}
	st, err := openState()
	if err != nil {
		return nil, err
	}
	inst, err := st.files()
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(inst.file(name + ".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if content, err := os.ReadFile(inst.file(name)); err == nil {
		return content, nil
	}
	failures := name + "-sqlite"
	if err := st.recall(failures); err != nil {
		return nil, migrationError{err}
	}
	content, err := t.buildSQLite(inst.dir)
	if err == nil {
		err = inst.write(name+".new", string(content))
	}
	if err == nil {
		err = os.Rename(inst.file(name+".new"), inst.file(name))
	}
	if failed := (migrationError{}); errors.As(err, &failed) {
		st.forget()
		st.remember(failures, err)
	}
	return content, err
}

// files returns the folder for the files of this run, which ends like a server.
func (s state) files() (*instance, error) { return sqliteRun.get(s.root, s.filesOnce) }

func (s state) filesOnce() (*instance, error) {
	const key = "sqlite"
	unlock, err := lockFile(filepath.Join(s.root, key+".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	for _, inst := range s.instances(key) {
		if _, err := inst.adopt(); err == nil && (inst.isWatched() || inst.watch() == nil) {
			return inst, nil
		}
	}
	if err := s.clean(); err != nil {
		return nil, err
	}
	inst, err := s.newInstance(key)
	if err != nil {
		return nil, err
	}
	return inst, inst.publish(record{Source: "files of SQLite"})
}

// buildSQLite makes the template in a folder inside of dir, which it removes.
func (t *Template) buildSQLite(dir string) ([]byte, error) {
	dir, err := os.MkdirTemp(dir, "sqltest-sqlite-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "template.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil { // a migration may do nothing
		return nil, err
	}
	db, err := openSQLite(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), migrating)
	defer cancel()
	if err := t.migrate(ctx, db); err != nil {
		return nil, migrationError{fmt.Errorf("migrate: %w", err)}
	}
	// The last connection to a file moves everything into it.
	if err := db.Close(); err != nil {
		return nil, migrationError{err}
	}
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return nil, migrationError{errors.New("migrate: it has left a connection open")}
	}
	return os.ReadFile(file) //nolint:gosec // a path chosen by sqltest
}
