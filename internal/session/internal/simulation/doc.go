// Package simulation runs histories of several Lockers, the real engine of session locks, on a server in memory (package
// memory), in virtual time. A seed chooses the users' calls, how long each statement takes, and every fault. A monitor
// checks the invariants of docs/design.md at every step. See docs/simulation.md.
package simulation
