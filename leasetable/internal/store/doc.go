// Package store has the atomic steps of the protocol: each method is one step, as docs/design.md lists them, and is run
// as a statement or a transaction of the database's dialect. What differs between databases is in this package alone.
//
// An error of a step is a [dberr.Error], which says whether the step may have taken effect. Unless its comment says
// otherwise a step may wait for the lock of its row. The number of steps that do so at a time is limited, so that a row
// that stays locked delays no other name.
package store
