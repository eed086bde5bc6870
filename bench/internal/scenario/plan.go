package scenario

import "time"

// Plan says how long everything is measured.
type Plan struct {
	LatencyRounds, LatencyPairs int

	ThroughputRounds   int
	Goroutines, OneOf  []int // on different names; on one name
	ThroughputDuration time.Duration

	FleetRounds int
	Fleets      []int
	FleetWarm   time.Duration // until their connections are open; and for each eight processes once more
	FleetRun    time.Duration

	Waiters         []int
	WaitingSettle   time.Duration // until a wait is a long one; and for each thousand waiters once more twice that
	WaitingRounds   int
	WaitingDuration time.Duration

	FaultRounds int
	FaultLimit  time.Duration // who has no lock by then is not waited for

	NetworkRounds int
}

// Hold is for how long a process of a fleet holds the lock.
const Hold = time.Millisecond

// Delay is for how long each way takes in the scenario of a network.
const Delay = 25 * time.Millisecond

// Full is the plan of a run that is published.
func Full() Plan {
	return Plan{
		LatencyRounds: 20, LatencyPairs: 30,
		ThroughputRounds: 2, Goroutines: []int{1, 4, 16, 64, 256}, OneOf: []int{1, 16, 256}, ThroughputDuration: 300 * time.Millisecond,
		FleetRounds: 2, Fleets: []int{2, 8, 64, 256}, FleetWarm: 200 * time.Millisecond, FleetRun: 1000 * time.Millisecond,
		Waiters: []int{64, 256}, WaitingSettle: 26 * time.Second, WaitingRounds: 2, WaitingDuration: 5 * time.Second,
		FaultRounds: 2, FaultLimit: 40 * time.Second,
		NetworkRounds: 5,
	}
}

// Quick is a plan that shows that all works, and measures nothing.
func Quick() Plan {
	return Plan{
		LatencyRounds: 3, LatencyPairs: 5,
		ThroughputRounds: 1, Goroutines: []int{1, 16}, OneOf: []int{1, 16}, ThroughputDuration: 100 * time.Millisecond,
		FleetRounds: 1, Fleets: []int{2, 16}, FleetWarm: 100 * time.Millisecond, FleetRun: 500 * time.Millisecond,
		Waiters: []int{16}, WaitingSettle: time.Second, WaitingRounds: 1, WaitingDuration: time.Second,
		FaultRounds: 1, FaultLimit: 22 * time.Second,
		NetworkRounds: 2,
	}
}
