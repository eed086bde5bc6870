package leasetable

import "context"

// guest is a part that came to a meeting.
type guest struct {
	*part
	of    *sharing // whose statement it is for
	alone bool     // written before done is closed: it goes on by itself
}

// meet runs p together with the other parts of an AcquireAll, and reports whether that was done: one who is not
// awaited goes on by itself. So they share a statement however late some of their goroutines are.
func (s *sharing) meet(
	ctx context.Context, meet func(context.Context, any) ([]any, bool), p *part,
) (took taken, done bool, err error) {
	p.done = make(chan struct{})
	me := &guest{part: p, of: s}
	all, awaited := meet(ctx, me)
	switch {
	case !awaited:
		return taken{}, false, nil
	case all == nil:
		<-p.done // by the first, whose statement has an end of its own
	default:
		s.host(ctx, all)
	}
	return p.took, !me.alone, p.err
}

// host runs a statement for those who came.
func (s *sharing) host(ctx context.Context, all []any) {
	parts := make([]*part, 0, len(all))
	for _, one := range all {
		if g, ok := one.(*guest); ok && g.of == s {
			parts = append(parts, g.part)
		} else if ok { // the AcquireAll is on a Locker that has several, perhaps on other databases
			g.alone = true
			close(g.done)
		}
	}
	for len(parts) > 0 {
		var some []*part
		some, parts = parts[0].withAlike(parts[1:])
		s.serve(ctx, some, false)
		for _, one := range some {
			close(one.done)
		}
	}
}
