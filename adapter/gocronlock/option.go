package gocronlock

import (
	"log/slog"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
)

// Option configures a Locker or an Elector.
type Option func(*settings)

type settings struct {
	logger gocron.Logger
	lock   []sqllock.Option
}

// WithLogger sets the logger, such as a *slog.Logger. At the level Error it logs what gocron does not tell: runs that were
// skipped because the database could not be used, losses of a Locker's leases, and campaigns of an Elector that failed. At
// Debug it logs runs that were skipped because another machine has the job. The default is slog.Default(). With nil, also a
// nil *slog.Logger, nothing is logged.
func WithLogger(logger gocron.Logger) Option {
	if l, ok := logger.(*slog.Logger); logger == nil || ok && l == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return func(s *settings) { s.logger = logger }
}

// WithLock sets options of each acquisition, such as sqllock.WithTTL. The minimum hold of a Locker stays that of NewLocker.
func WithLock(opts ...sqllock.Option) Option {
	return func(s *settings) { s.lock = append(s.lock, opts...) }
}

func choose(opts []Option) settings {
	s := settings{logger: slog.Default()}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}
