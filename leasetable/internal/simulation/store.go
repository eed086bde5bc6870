package simulation

import "github.com/sqllock/sqllock/leasetable/internal/store"

// faulty is the store that a Locker sees: each call has its fault. It has the steps by what they do, like store.Database.
type faulty struct {
	readSteps
	leaseSteps
	acquireSteps
	releaseSteps
	batchSteps
	holdSteps
	permitSteps
	waitSteps
	store.Server
}

var _ store.Store = faulty{}

func (p *process) faulty() store.Store {
	return faulty{
		readSteps:    readSteps{p},
		leaseSteps:   leaseSteps{p},
		acquireSteps: acquireSteps{p},
		releaseSteps: releaseSteps{p},
		batchSteps:   batchSteps{p},
		holdSteps:    holdSteps{p},
		permitSteps:  permitSteps{p},
		waitSteps:    waitSteps{p},
		Server:       p.store,
	}
}

// id is a lease's id for people: leases are numbered in the order in which they are opened.
func (p *process) id(lease []byte) string { return p.leaseName(string(lease)) }

type nothing struct{}
