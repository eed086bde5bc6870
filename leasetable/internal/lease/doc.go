// Package lease keeps the leases of a Locker, and the locks that they hold: it opens a lease row, renews it, ends it at
// its deadline whatever else happens, verifies its locks after a change, and frees what a lost answer may have left.
//
// A name is acquired by a [Claim]: [Keeper.Begin] begins it, and exactly one of Commit and Abandon ends it. A
// committed claim is a [Held] lock, which is released, handed off to the next goroutine, moved to another lease, or
// exported.
package lease
