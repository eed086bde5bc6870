package simulation

import "github.com/sqllock/sqllock/leasetable/internal/store"

// faulty is the store that a Locker sees: each call has its fault.
type faulty struct {
	*process
	store.Server
}

var _ store.Store = faulty{}

func (p *process) faulty() store.Store { return faulty{p, p.store} }

// id is a lease's id for people: leases are numbered in the order in which they are opened.
func (p *process) id(lease []byte) string { return p.leaseName(string(lease)) }

type nothing struct{}
