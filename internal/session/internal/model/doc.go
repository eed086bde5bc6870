// Package model is the protocol of session locks of docs/design.md, chapter 2, as a small program of guarded steps, and a search of
// every state which these steps can reach; see package modelcheck. It knows nothing of the engine, nor of a server: it is written from
// the document and the .sql files, and where they differ one of them is wrong.
//
// In the model are one name that everybody wants, another one on the same session, two or three processes, and the statements that
// take and give back keys, each alone or both at once, slices of a wait with the gate, forget, and heartbeats. A wait of PostgreSQL,
// and a try for a share, runs in steps; its time may end at the moment of a grant. A statement may fail after any of its steps. It may
// run long after its client has closed the session, or never; its answer may come late, or never. A caller may leave at any step. The
// server may end a session at any step. A process may be stopped between any two steps.
//
// Simpler than in the protocol: a process has one session, for waits or for tries; a lock is handed over in a process only by the
// statement that gives its key back and takes it again; the server gives a key to the first in its queue some time after it is free;
// it may fail a heartbeat, and a failed one restarts its count of the silence, too; of a process the server has one session that was
// closed before, at most. Not in the model are seats, sharers within a process, Terminate, standbys, poolers, and Close.
package model
