package otellock_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	_ "modernc.org/sqlite" // the driver

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/otellock"
	"github.com/sqllock/sqllock/schema"
)

// A program has an exporter where this one has a reader.
func Example() {
	ctx := context.Background()
	db, closeDB := lockDatabase(ctx)
	defer closeDB()
	reader := metric.NewManualReader()

	recorder, err := otellock.New(otellock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		log.Fatal(err)
	}
	defer recorder.Close()
	locker, err := leasetable.FromDB(db, leasetable.WithHook(recorder.Hook))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()

	err = sqllock.Do(ctx, locker, "nightly report", func(ctx context.Context) error {
		var metrics metricdata.ResourceMetrics
		if err := reader.Collect(ctx, &metrics); err != nil {
			return err
		}
		for _, m := range metrics.ScopeMetrics[0].Metrics {
			if held, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "sqllock.locks" {
				fmt.Fprintln(os.Stdout, m.Name, held.DataPoints[0].Value)
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: sqllock.locks 1
}

// The names of locks are order/17 and such. One time series for all orders is enough.
func ExampleWithNames() {
	recorder, err := otellock.New(otellock.WithNames(func(name string) string {
		group, _, _ := strings.Cut(name, "/")
		return group
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer recorder.Close()
}

// lockDatabase returns a database with the lease tables.
func lockDatabase(ctx context.Context) (db *sql.DB, closeDB func()) {
	folder, err := os.MkdirTemp("", "sqllock-example-")
	if err != nil {
		log.Fatal(err)
	}
	db, err = sql.Open("sqlite", "file:"+filepath.Join(folder, "locks.db"))
	if err != nil {
		log.Fatal(err)
	}
	if err := schema.Apply(ctx, db, schema.SQLite, schema.Tables{}); err != nil {
		log.Fatal(err)
	}
	return db, func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
}
