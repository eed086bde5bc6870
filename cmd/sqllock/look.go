package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// look is what ls, show and watch have in common: they read who holds what, of both kinds of lock.
type look struct {
	*Main
	place
	kind string
	json bool
}

func (l *look) addFlags(cmd *cobra.Command) {
	l.place.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&l.kind, "kind", kindAll, "`kind` of lock: lease, session or all")
	completeFlag(cmd, "kind", kindLease, kindSession, kindAll)
	flags.BoolVar(&l.json, "json", false, "print a JSON array")
}

func (l *look) check() error {
	if l.kind != kindLease && l.kind != kindSession && l.kind != kindAll {
		return fmt.Errorf("--kind is %s, %s or %s", kindLease, kindSession, kindAll)
	}
	return l.checkTables(l.kind)
}

// read opens a reader, reads once and closes it. Of all kinds one may be missing, which is said on stderr.
func (l *look) read(cmd *cobra.Command, from sources) (reading, error) {
	r, err := l.open(cmd, from)
	if err != nil {
		return reading{}, err
	}
	defer r.close()
	seen, err := r.read(cmd.Context())
	for _, missing := range seen.missing {
		l.note(missing)
	}
	return seen, err
}
