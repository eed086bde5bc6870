package pg

import _ "embed"

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
