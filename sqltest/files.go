package sqltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// hashFiles returns a hash of the names and contents of all files.
func hashFiles(fsys fs.FS) (string, error) {
	all := sha256.New()
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		fmt.Fprintf(all, "%q %d\n", name, len(content))
		_, _ = all.Write(content)
		return err
	})
	return hex.EncodeToString(all.Sum(nil)), err
}

func runFiles(ctx context.Context, db *Database, fsys fs.FS) error {
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && path.Ext(name) == ".sql" && !strings.HasSuffix(name, ".down.sql") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("no .sql files: %w", fs.ErrNotExist)
	}
	slices.Sort(names)
	for _, name := range names {
		content, err := fs.ReadFile(fsys, name)
		if err == nil {
			err = runScript(ctx, db, string(content))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// runScript runs a text of several statements.
func runScript(ctx context.Context, db *Database, text string) error {
	if db.Engine != EngineMySQL && db.Engine != EngineMariaDB {
		_, err := db.ExecContext(ctx, text)
		return err
	}
	p, ok := productOf(db.Engine)
	if !ok {
		return withoutError(db.Engine)
	}
	several, err := p.open(db.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = several.Close() }()
	_, err = several.ExecContext(ctx, text)
	return err
}
