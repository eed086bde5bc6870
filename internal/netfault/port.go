package netfault

import (
	"context"
	"fmt"
	"net"
	"time"
)

// port is the port that clients connect to. While connections are refused, it is kept for this network.
type port struct {
	address  string       // does not change
	listener net.Listener // nil while connections are refused
	giveUp   func()       // gives up the port that is kept; may be nil
}

// refuse ends the listener.
func (p *port) refuse() {
	if p.listener != nil {
		_ = p.listener.Close() // ends its accept
		p.listener = nil
		p.giveUp = keepPort(p.address)
	}
}

// listenAgain listens after refuse. A connection to elsewhere may have the port for a moment, if it was not kept.
func (p *port) listenAgain() error {
	p.close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
		if err == nil {
			p.listener = listener
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("listen again: %w", err)
		}
	}
}

// close ends the listener, or gives up the port that is kept.
func (p *port) close() {
	if p.listener != nil {
		_ = p.listener.Close()
	}
	if p.giveUp != nil {
		p.giveUp()
		p.giveUp = nil
	}
}
