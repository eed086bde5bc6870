// Package workload is what the demo does with locks: three machines with a SQLite file.
package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	_ "modernc.org/sqlite" // the driver

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/otellock"
	"github.com/sqllock/sqllock/schema"
)

// Machines are the names of the machines. The path of each one's metrics begins with it.
var Machines = []string{"web-1", "web-2", "deploy-1"}

// Workload is the machines. It serves their metrics.
type Workload struct {
	http.ServeMux
	db       *sql.DB
	machines []*machine
}

// machine has what a process has that uses locks: a Locker, and its metrics.
type machine struct {
	locker   *leasetable.Locker
	recorder *otellock.Recorder
	meters   *metric.MeterProvider
}

// Open makes the machines, with the lease tables in the file.
func Open(ctx context.Context, file string) (w *Workload, err error) {
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		return nil, err
	}
	w = &Workload{db: db}
	defer func() { //nolint:contextcheck // ctx may have ended by then
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if err := schema.Apply(ctx, db, schema.SQLite, schema.Tables{}); err != nil {
		return nil, err
	}
	for _, name := range Machines {
		m, metrics, err := newMachine(db, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		w.machines = append(w.machines, m)
		w.Handle("/"+name+"/metrics", metrics)
	}
	return w, nil
}

func newMachine(db *sql.DB, name string) (*machine, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	m := &machine{meters: metric.NewMeterProvider(metric.WithReader(reader))}
	m.recorder, err = otellock.New(otellock.WithMeterProvider(m.meters))
	if err != nil {
		return nil, nil, err
	}
	m.locker, err = leasetable.FromDB(db, leasetable.WithHook(m.recorder.Hook), leasetable.WithOwner(name), leasetable.WithLogger(nil))
	if err != nil {
		return nil, nil, err
	}
	return m, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// Run has the machines work until ctx ends. It calls tell when a trouble begins.
func (w *Workload) Run(ctx context.Context, tell func(string)) {
	var all sync.WaitGroup
	for _, m := range w.machines[:2] {
		for range 3 {
			all.Go(func() { m.thumbnails(ctx) })
		}
		all.Go(func() { m.mail(ctx) })
		all.Go(func() { m.report(ctx) })
		all.Go(func() { m.lead(ctx) })
	}
	all.Go(func() { w.haveTroubles(ctx, tell) })
	all.Wait()
}

// Close closes the Lockers and the database.
func (w *Workload) Close() (err error) {
	for _, m := range w.machines {
		err = errors.Join(err, m.locker.Close(), m.recorder.Close(), m.meters.Shutdown(context.Background()))
	}
	return errors.Join(err, w.db.Close())
}
