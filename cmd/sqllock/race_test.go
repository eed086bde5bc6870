//go:build race

package main

const raceFlag = "-race=true"

// withoutSQLite leaves out SQLite, as `make test` does, so that it is built once.
const withoutSQLite = "-gcflags=modernc.org/...=-race=false"
