package conn

import (
	"context"
	"net"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
)

// cutter cuts off a connection when the context of a statement on it ends, because its driver does not, or does it slowly.
type cutter struct {
	socket net.Conn // nil if it is not known
	cut    bool     // the connection is of no more use
}

func (c *cutter) knownSocket() net.Conn { return c.socket }

// watch makes a statement that begins now fail once ctx has been over for the given time. The statement calls ended with its
// error when it is over, and returns the error of that.
func (c *cutter) watch(ctx context.Context, grace time.Duration) (ended func(error) error) {
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, c.end) })
	return func(err error) error {
		if !stop() {
			c.cut = true
		}
		return why(ctx, err)
	}
}

// why returns the error of a statement that failed with err. If its context has ended that is the reason, unless the server
// has said another one.
func why(ctx context.Context, err error) error {
	if over := ctx.Err(); err != nil && over != nil && connector.CodeOf(err) == "" {
		return over
	}
	return err
}

// end makes the running statement fail. MySQL's driver logs one line about that, and one more if its socket is closed
// meanwhile.
func (c *cutter) end() {
	_ = c.socket.SetDeadline(time.Unix(1, 0)) // fails if the socket is closed
	// The driver may set another deadline later, if it has a read timeout.
	time.AfterFunc(time.Second, func() { _ = c.socket.Close() })
}
