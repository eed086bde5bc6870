// Package memory is a database of lease tables in memory, for tests: rows, row locks with a queue, transactions,
// a queue for turns, and a clock that can be set. Every step of [store.Store] is linearizable. It models what the statements
// of the protocol do on the real servers, and package store's tests compare it with them.
//
// It has no connections: a caller that wants a step to fail, to be late, or to go on after its caller has left wraps the
// store (see package simulation).
package memory
