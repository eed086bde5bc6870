package pg

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key returns the advisory lock key of a name: the first eight bytes, big-endian, of the
// SHA-256 of "sqllock\x00" followed by the name. It will not change, so another program may
// take the same lock with pg_advisory_lock(key).
//
// Two names share a key, and so a lock, with a probability of about n²/2⁶⁵ for n names: one in
// 37 million at a million names.
func Key(name string) int64 {
	sum := sha256.Sum256([]byte("sqllock\x00" + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}
