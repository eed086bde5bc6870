//go:build race

package seeds

import "time"

// fewer is by how much Test runs fewer seeds than it is asked for. With the race detector histories are slow.
const fewer = 30

// mostTime bounds the time of Test. The histories with the race detector are there for races.
const mostTime = 5 * time.Second
