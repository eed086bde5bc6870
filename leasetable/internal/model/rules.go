package model

// Rule is a rule of the protocol. A test leaves each of them out, and the search then finds a history that breaks an invariant.
type Rule uint32

// The rules, by the invariants that they keep.
const (
	DeadlineFromSending  Rule = 1 << iota // I3: trust counts from when the renewal was sent, not from its answer
	Margin                                // I3: the holder stops before the database would
	ToldBeforeRelease                     // I1: a release ends the lock before it sends its statement
	LeaseFirst                            // I7: a lease row is confirmed before a claim by it begins
	OnlyGoneLeases                        // I9: a takeover is sent, and succeeds, only if the row of the other lease is gone
	RenewalNeedsRow                       // I10: a renewal does nothing if the row is gone or has expired
	UnchangedRenewals                     // I11: expire_unchanged compares renewals
	UnchangedForTTL                       // I11: it is sent after a TTL of the waiter's clock
	TakeoverBumpsToken                    // I12: a takeover bumps the token
	UnknownIsOrphan                       // I17: a claim, or a release, without an answer is released by lease id
	OrphanRetires                         // I18: a lease with an orphan takes no more claims
	LostLeaseIsTold                       // I20: a renewal that finds no row ends the locks of the lease
	ForceIsTold                           // I20: a renewal that tells of a change has the locks verified
	ReleaseComparesToken                  // I21: a release frees the name only from its own token
	ReleaseKnowsItsEnd                    // I21: a release that was repeated past the deadline does not count as confirmed
	ReleaseKnowsBothEnds                  // I21: nor past the deadline of the other lease, if it may be on two
	OrphansAreKept                        // I22: a name that release_by_lease frees is kept as long as one that release frees
	MoveComparesLease                     // I26: a move moves the name only from the lease that the lock was on
	BothLeasesEndTheLock                  // I27: a lock that may be on two leases ends with the first
	ReleaseOnBothLeases                   // I27: its release frees the name on both
	ReleaseKeepsPosition                  // I27: and leaves orphans on both also if one of them ends meanwhile
)
