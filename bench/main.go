// Command bench measures sqllock beside the bare statements and beside other libraries, in one run on one machine:
//
//	go run . [-quick] [-only latency,fleet] [-o results/FILE.json]
//
// With -only, a file that exists keeps its other scenarios: something may have disturbed these.
//
// It starts the servers, writes a result as JSON, and ends them. Command report draws it and writes the tables. See
// docs/performance.md for what is measured, and how.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/bench/internal/fleet"
	"github.com/sqllock/sqllock/bench/internal/result"
	"github.com/sqllock/sqllock/bench/internal/scenario"
	"github.com/sqllock/sqllock/bench/internal/server"
)

func main() {
	_ = gomysql.SetLogger(&gomysql.NopLogger{}) // connections are cut off on purpose, which the driver would log
	if os.Getenv(fleet.Environ) != "" {
		if err := fleet.Work(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	quick := flag.Bool("quick", false, "take a few minutes to show that all works, and measure nothing")
	only := flag.String("only", "", "the scenarios to run, separated by commas")
	output := flag.String("o", "", "the file to write, results/DATE.json by default; with -only a file that exists keeps its other scenarios")
	flag.Parse()
	if err := run(ctx, *quick, *only, *output); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, quick bool, only, output string) error {
	r := &result.Result{Began: time.Now().UTC().Truncate(time.Second), Quick: quick, Servers: map[string]string{}}
	if only != "" && output == "" {
		return errors.New("a part of a run needs -o")
	}
	if output == "" {
		name := r.Began.Format(time.DateOnly)
		if quick {
			name = "quick"
		}
		output = filepath.Join("results", name+".json")
	}
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil { //nolint:gosec // it is no secret
		return err
	}
	var err error
	if r.Machine, err = machine(filepath.Dir(output)); err != nil {
		return err
	}
	r.Versions = versions()
	var whole *result.Result // of which a part is measured again
	if _, err := os.Stat(output); err == nil && only != "" {
		if whole, err = result.Read(output); err != nil {
			return err
		}
	}
	servers, err := server.Start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range servers {
			s.End()
		}
	}()
	for _, s := range servers {
		log.Print(s.Version)
		r.Servers[string(s.Engine)] = s.Version
	}
	plan := scenario.Full()
	if quick {
		plan = scenario.Quick()
	}
	runs := &scenario.Run{Plan: plan, Servers: servers, Result: r}
	defer runs.Close()
	for _, s := range scenario.All() {
		if only != "" && !slices.Contains(strings.Split(only, ","), s.Name) {
			continue
		}
		began := time.Now()
		if err := s.Run(ctx, runs); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		log.Printf("%s: %v", s.Name, time.Since(began).Round(time.Second))
	}
	r.Took = time.Since(r.Began).Round(time.Second).String()
	if whole != nil {
		whole.Again(r)
		r = whole
	}
	log.Printf("%s in %s", output, r.Took)
	return r.Write(output)
}
