// Package memory is a server of session locks in memory, for tests: sessions that own keys, a queue for each key, first
// come first served, and the ends of sessions. It knows nothing of networks and clients. See docs/simulation.md.
package memory
