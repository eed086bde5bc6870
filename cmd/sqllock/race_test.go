//go:build race

package main

const raceFlag = "-race=true"

// withoutSQLite excludes SQLite from the race detector, as `make test` does, so that SQLite is compiled only once.
const withoutSQLite = "-gcflags=modernc.org/...=-race=false"
