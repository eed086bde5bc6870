// Command try runs the demo, and a Prometheus with the rules of otellock, for nine minutes. It fails unless each panel of
// the dashboard has data, and each alert fires: not before its cause, and no other. It draws the panels from that data.
//
//	make try-metrics
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqllock/sqllock/otellock/demo/internal/dashboard"
	"github.com/sqllock/sqllock/otellock/demo/internal/picture"
	"github.com/sqllock/sqllock/otellock/demo/internal/prom"
	"github.com/sqllock/sqllock/otellock/demo/internal/workload"
)

func main() {
	files := flag.String("files", "otellock", "the folder of dashboard.json and alerts.yml")
	svg := flag.String("svg", "", "where to draw the panels; nowhere if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := try(ctx, *files, *svg); err != nil {
		log.Fatal(err)
	}
}

func try(ctx context.Context, files, svg string) (err error) {
	panels, err := dashboard.Read(filepath.Join(files, "dashboard.json"))
	if err != nil {
		return err
	}
	rules := filepath.Join(files, "alerts.yml")
	folder, err := os.MkdirTemp("", "sqllock-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	w, err := workload.Open(ctx, filepath.Join(folder, "locks.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }() //nolint:contextcheck // ctx has ended by then
	server := httptest.NewServer(w)
	defer server.Close()
	targets := make(map[string]string)
	for _, machine := range workload.Machines {
		targets[machine] = "/" + machine + "/metrics"
	}
	p, err := prom.Start(ctx, folder, rules, strings.TrimPrefix(server.URL, "http://"), targets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()

	began := time.Now()
	working, cancel := context.WithTimeout(ctx, workload.GaveUp+45*time.Second)
	defer cancel()
	w.Run(working, func(trouble string) { log.Print(trouble) })
	if err := ctx.Err(); err != nil {
		return err
	}
	r := run{p, began, time.Now()}
	alerts, err := r.checkAlerts(ctx, rules)
	drawn, err2 := r.checkPanels(ctx, panels)
	if err := errors.Join(err, err2); err != nil || svg == "" {
		return err
	}
	return draw(svg, append(drawn, alerts), began)
}

func draw(svg string, panels []picture.Panel, began time.Time) (err error) {
	file, err := os.Create(svg) //nolint:gosec // the user's choice
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for i := range panels {
		for _, at := range []time.Duration{workload.Taken, workload.Blocked, workload.Stuck, workload.GaveUp} {
			panels[i].Marks = append(panels[i].Marks, at.Minutes())
		}
	}
	fmt.Fprintln(os.Stderr, "drawn:", svg)
	return picture.Draw(file, panels, began)
}
