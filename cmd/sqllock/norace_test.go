//go:build !race

package main

const (
	cgo           = "0"
	raceFlag      = "-race=false"
	withoutSQLite = "-gcflags="
)
