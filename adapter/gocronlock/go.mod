module github.com/sqllock/sqllock/adapter/gocronlock

go 1.25.0

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/sqllock/sqllock v0.1.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	github.com/jmoiron/sqlx v1.4.0 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
)
