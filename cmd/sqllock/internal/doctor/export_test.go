package doctor

import (
	"context"
	"time"
)

var (
	Replicated = replicated
	FileSystem = fileSystem
	IsNetwork  = isNetwork
	Use        = use
)

// Hosts examines a URL with two hosts.
func Hosts(ctx context.Context, asksRole bool, timeout time.Duration) (Finding, error) {
	return postgresHosts(ctx, &patient{Target: Target{Hosts: []string{"a", "b"}, AsksRole: asksRole, ConnectTimeout: timeout}})
}

// Clock examines a clock that is ahead by this much.
func Clock(ctx context.Context, ahead time.Duration) (Finding, error) {
	now := func(context.Context) (time.Time, error) { return time.Now().Add(ahead), nil }
	return clock(ctx, &patient{Target: Target{Now: now}})
}
