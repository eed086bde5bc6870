package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// mostHanging is the longest reasonable timeout for one of several hosts that does not answer.
const mostHanging = 5 * time.Second

// postgresHosts examines a URL with several hosts. pgx tries them in order, each for as long as connecting may take.
func postgresHosts(_ context.Context, p *patient) (Finding, error) {
	if len(p.Hosts) < 2 {
		return Finding{}, nil
	}
	var add []string
	which := "the first that can be connected to and is what target_session_attrs asks for"
	if !p.AsksRole {
		which = "the first that can be connected to, even a standby"
		add = append(add, "target_session_attrs=read-write")
	}
	if p.ConnectTimeout > mostHanging {
		add = append(add, "connect_timeout=2")
	}
	text := fmt.Sprintf("one of %s: %s; one that hangs is waited for %v", strings.Join(p.Hosts, ", "), which, p.ConnectTimeout)
	if len(add) > 0 {
		return beware("add "+strings.Join(add, " and ")+" to the URL (?… or &…)", "%s", text), nil
	}
	return fine("%s", text), nil
}
