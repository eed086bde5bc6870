// Command tidy runs `go mod tidy` for all modules but the core, with the core of this working copy: `make tidy`.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqllock/sqllock/internal/modules"
)

func main() {
	if err := tidy(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tidy(ctx context.Context) error {
	tree, err := modules.Read(".")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "sqllock-tidy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	proxy, err := tree.Publish(ctx, folder)
	if err != nil {
		return err
	}
	for _, m := range tree.Others() {
		if err := proxy.Tidy(ctx, m, filepath.Join(folder, strings.ReplaceAll(m.Folder, "/", "-"))); err != nil {
			return fmt.Errorf("%s: %w", m.Folder, err)
		}
	}
	return nil
}
