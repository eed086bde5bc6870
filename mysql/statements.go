package mysql

import _ "embed"

// The statements, one per file.
var (
	//go:embed sql/modes.sql
	modesSQL string
	//go:embed sql/probe.sql
	probeSQL string
	//go:embed sql/session.sql
	sessionSQL string
	//go:embed sql/ttl.sql
	ttlSQL string
	//go:embed sql/get_lock.sql
	getLockSQL string
	//go:embed sql/release_lock.sql
	releaseLockSQL string
	//go:embed sql/many.sql
	manySQL string
	//go:embed sql/ping.sql
	pingSQL string
	//go:embed sql/forget.sql
	forgetSQL string
	//go:embed sql/holder.sql
	holderSQL string
	//go:embed sql/details.sql
	detailsSQL string
	//go:embed sql/owner.sql
	ownerSQL string
	//go:embed sql/list.sql
	listSQL string
	//go:embed sql/shown.sql
	shownSQL string
	//go:embed sql/victim.sql
	victimSQL string
	//go:embed sql/kill.sql
	killSQL string
)
