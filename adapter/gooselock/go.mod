module github.com/sqllock/sqllock/adapter/gooselock

go 1.26.0

require (
	github.com/pressly/goose/v3 v3.29.0
	github.com/sqllock/sqllock v0.1.0
)

require (
	github.com/sethvargo/go-retry v0.5.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
)
