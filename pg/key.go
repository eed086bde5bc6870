package pg

import (
	"crypto/sha256"
	"encoding/binary"
)

// key is the key of an advisory lock: a bigint, or a pair of ints, the first of which is the upper half of n.
type key struct {
	n    int64
	pair bool
}

// subid returns the objsubid that tells the two kinds apart in pg_locks.
func (k key) subid() int {
	if k.pair {
		return 2
	}
	return 1
}

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
