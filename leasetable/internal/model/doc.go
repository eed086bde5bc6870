// Package model is the lease protocol of docs/design.md, chapters 3 to 5, as a small program of guarded steps, and a search that
// visits every state which these steps can reach. If a state breaks an invariant, the search prints the shortest history to it. The
// package knows nothing of the engine: it is written from the document, and where the two differ one of them is wrong.
//
// In the model are one name, two or three processes and their leases, and the statements open_lease, acquire, takeover, renew, expire,
// expire_unchanged, end_lease, release, release_by_lease, move, force and still_held. A statement on the lock row, and a renewal, may
// run long after it was sent, or never; its answer may come late, or never. A process may be stopped or killed between any two steps:
// it takes none. A release does not wait for the move of an Extend. The database's clock may be as fast as the margin allows, and may
// be set back.
//
// Simpler than in the protocol:
//
//   - open_lease, expire, end_lease, still_held and the reads run and are answered in one step. expire and end_lease may run at any
//     time at which their condition holds, so one that is late adds nothing.
//   - release_by_lease may run at any time from when it was first sent until its lease ends.
//   - Of the statements of a process on the lock row that were given up, one may still run.
//   - A lease on which nothing hangs is as if it had just been renewed, unless its deadline passes.
//   - A process has one goroutine that wants the name. So a lock that was told that it is lost is idle at once, and its late release is
//     a statement that may still run.
//
// Not in the model are permits, the wait queue, handoffs and blocks, turns and hints, Export and Adopt, guards, batches, Close,
// failovers, a clock that is set ahead, Galera, and what is particular to a server or driver. The simulation has most of them: see
// docs/simulation.md.
//
// The files: state.go has what a state is, database.go what statements do, lease.go and lock.go what processes do, model.go time and
// bounds, search.go the invariants and the search, rules.go what a test leaves out.
package model
