package pg

import _ "embed"

// The statements, one a file.
var (
	//go:embed sql/probe.sql
	probeSQL string
	//go:embed sql/settings.sql
	settingsSQL string
	//go:embed sql/try.sql
	trySQL string
	//go:embed sql/unlock.sql
	unlockSQL string
	//go:embed sql/wait_begin.sql
	waitBeginSQL string
	//go:embed sql/wait.sql
	waitSQL string
	//go:embed sql/wait_end.sql
	waitEndSQL string
	//go:embed sql/holder.sql
	holderSQL string
)
