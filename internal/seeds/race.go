//go:build race

package seeds

// fewer is by how much Test runs fewer seeds than it is asked for. With the race detector histories are slow.
const fewer = 30
