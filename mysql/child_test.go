package mysql_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
)

// The environment variables that make the test program a child process.
const (
	childDSN = "SQLLOCK_TEST_CHILD_DSN"
	childTTL = "SQLLOCK_TEST_CHILD_TTL"
	childJob = "SQLLOCK_TEST_CHILD_JOB" // a locktest.Job, or history
)

func child() int {
	ttl, _ := time.ParseDuration(os.Getenv(childTTL))
	l, err := mysql.New(os.Getenv(childDSN), mysql.WithSessionTTL(ttl), mysql.WithOwner("child"), mysql.WithLogger(nil))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	if job := os.Getenv(childJob); job == historyJob {
		err = history.Serve(context.Background(), l, os.Stdin, os.Stdout)
	} else {
		err = locktest.Job(job).Run(l, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// childEnv returns the environment variables that make the test program a child process.
func childEnv(dsn string, ttl time.Duration, job string) []string {
	return []string{childDSN + "=" + dsn, childTTL + "=" + ttl.String(), childJob + "=" + job}
}
