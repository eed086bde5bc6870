//go:build race

package main

// The race detector needs C.
const (
	cgo      = "1"
	raceFlag = "-race=true"
)

// withoutSQLite excludes SQLite from the race detector, as `make test` does, so that SQLite is compiled only once.
const withoutSQLite = "-gcflags=modernc.org/...=-race=false"
