// Package seeds searches for a seed whose simulated history breaks an invariant, and makes that history as short as
// possible. It knows nothing of locks: the simulations of leases and of session locks share it. See docs/simulation.md.
package seeds
