module github.com/sqllock/sqllock/adapter/migratelock

go 1.25.11

require (
	github.com/golang-migrate/migrate/v4 v4.20.1
	github.com/sqllock/sqllock v0.1.0
)
