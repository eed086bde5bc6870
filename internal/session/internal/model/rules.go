package model

// Rule is a rule of the protocol. A test leaves each of them out, and the search then finds a history that breaks an invariant.
type Rule uint32

// The rules, by the invariants that they keep.
const (
	ToldBeforeRelease      Rule = 1 << iota // I1: a release ends the lock before it sends its statement
	ToldBeforeClosed                        // I1: the locks of a session end before it is closed
	DeadlineFromSending                     // I3: trust counts from when the statement was sent, not from its answer
	Margin                                  // I3: the client stops before the server would
	WaiterIsTrustedBriefly                  // I3: a session that has waited is trusted for less, until the server keeps it for its TTL
	KeepIsAwaited                           // I3: it does once it has answered that
	WaitHoldsNothing                        // I40: a wait is on a session that holds nothing else
	GivesAllBack                            // I40: a slice that gets the key after its time may have it twice, and gives everything back
	LocksEndWithSession                     // I42: the next session of a process has none of the locks of the one before
	UncertainEnds                           // I42: a session whose answer is missing is not used again
	ErrorGivesBack                          // I43: after an error every key of the statement is given back
	RecoversItsKeys                         // I43: and no other key
	ErrorForgets                            // I43: after an error of a wait everything is given back
	LeaverGivesBack                         // I44: what was taken for a caller that has left is given back
	LeaverForgets                           // I44: after a wait, everything, and the gate as well
	ForgetsGate                             // I44: and the client knows that the gate is gone
	TriesAfterTimeout                       // I47: a slice whose time ends tries once more: it may have been granted what it waits for
	GateIsGivenBack                         // I47: a slice that gets the key gives the gate back
	GateIsKept                              // I47: a waiter keeps the gate between its slices
	ShareTriesGate                          // I48: who tries for a share tries the gate, too
	KeyBeforeGate                           // I48: after the key
)
