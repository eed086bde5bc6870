package pg

import (
	_ "embed"

	"github.com/sqllock/sqllock/internal/pgqueue"
)

// The statements, one per file.
var (
	//go:embed sql/probe.sql
	probeSQL string
	//go:embed sql/no_limit.sql
	noLimitSQL string
	//go:embed sql/settings.sql
	settingsSQL string
	//go:embed sql/try.sql
	trySQL string
	//go:embed sql/unlock.sql
	unlockSQL string
	//go:embed sql/many.sql
	manySQL string
	//go:embed sql/ping.sql
	pingSQL string
	//go:embed sql/wait_begin.sql
	waitBeginSQL string
	//go:embed sql/wait.sql
	waitSQL string
	//go:embed sql/wait_end.sql
	waitEndSQL string
	//go:embed sql/idle.sql
	idleSQL string
	//go:embed sql/forget.sql
	forgetSQL string
	//go:embed sql/holder.sql
	holderSQL string
	//go:embed sql/list.sql
	listSQL string
	//go:embed sql/terminate.sql
	terminateSQL string
	//go:embed sql/tx_lock.sql
	txLockSQL string
	//go:embed sql/tx_try.sql
	txTrySQL string
)

// seatSQL takes a seat for a wait for the key $1. It returns its key, or NULL if none is free, and what ping.sql returns. Who
// has none holds nothing and is in nobody's way, so the server ends the session after a silence of $2 only, which is empty if
// it has no idle_session_timeout. shareSeatSQL does the same for a share.
var (
	seatSQL      = takeSeat(pgqueue.FirstSeat)
	shareSeatSQL = takeSeat(pgqueue.FirstShared)
)

func takeSeat(first int) string {
	return `SELECT key, pg_is_in_recovery(), pg_backend_pid(),
       CASE WHEN key IS NULL AND $2 <> '' THEN set_config('idle_session_timeout', $2, false) END
FROM (SELECT ` + pgqueue.TakeSeat("$1::bigint", first) + ` AS key OFFSET 0) seat`
}
