package mysql

import (
	"crypto/sha256"
	"encoding/hex"
)

// ServerName returns the name that GET_LOCK is called with for a lock in a database: "sqllock_" and the first 24 bytes,
// in lower-case hex, of the SHA-256 of "sqllock\x00", the database, a zero byte and the name. So a name can have any
// bytes. The result has at most the 64 characters that MySQL allows, and means the same on MySQL and MariaDB, whose
// rules for case and character sets differ. It will not change, so another program may take the same lock.
func ServerName(database, name string) string {
	sum := sha256.Sum256([]byte("sqllock\x00" + database + "\x00" + name))
	return "sqllock_" + hex.EncodeToString(sum[:24])
}
