package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// rfc3339 is a form of RFC 3339 that truncates to milliseconds, so the printed time is never later than the real one.
const rfc3339 = "2006-01-02T15:04:05.000Z07:00"

// childEnv returns the environment of the command, without the variables that an outer sqllock has set.
func (r *run) childEnv(lock sqllock.Lock) []string {
	env := slices.DeleteFunc(slices.Clone(r.Environ), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"SQLLOCK_NAME", "SQLLOCK_OWNER", "SQLLOCK_TOKEN", "SQLLOCK_EXPIRES"}, key)
	})
	env = append(env, "SQLLOCK_NAME="+r.name, "SQLLOCK_OWNER="+r.holder())
	if lease, ok := lock.(*leasetable.Lease); ok {
		env = append(env,
			"SQLLOCK_TOKEN="+strconv.FormatInt(lease.Token(), 10),
			"SQLLOCK_EXPIRES="+time.Now().Add(lease.Remaining()).UTC().Format(rfc3339))
	}
	return env
}
