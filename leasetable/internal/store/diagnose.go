package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// diagnoseTimeout bounds the query of Diagnose.
const diagnoseTimeout = time.Second

// Diagnose implements Store. It asks whether the server answers another statement and, on PostgreSQL, whether commits
// may be waiting for a synchronous standby.
func (s readSteps) Diagnose(ctx context.Context, err error) error {
	if !errors.Is(err, dberr.ErrSlow) || dberr.OutcomeKnown(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	query := "SELECT ''"
	if s.dialect == schema.Postgres {
		query = "SELECT pg_catalog.current_setting('synchronous_standby_names')"
	}
	var standbys string
	switch asking := s.Work.QueryRowContext(ctx, query).Scan(&standbys); {
	case asking != nil && s.Work.Stats().InUse == s.Work.Stats().MaxOpenConnections:
		return fmt.Errorf("%w; all %d connections of this Locker wait for answers", err, s.Work.Stats().MaxOpenConnections)
	case asking != nil:
		return fmt.Errorf("%w; it does not answer a lone SELECT either", err)
	case standbys != "":
		return fmt.Errorf("%w; it does answer a SELECT: is a standby missing that commits wait for? synchronous_standby_names = %s", err, standbys)
	}
	return fmt.Errorf("%w; it does answer a SELECT", err)
}
