module github.com/sqllock/sqllock/adapter/cronlock

go 1.25.0

require (
	github.com/robfig/cron/v3 v3.0.1
	github.com/sqllock/sqllock v0.1.0
)

require github.com/jmoiron/sqlx v1.4.0 // indirect
