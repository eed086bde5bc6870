// Command demo locks as a busy program does, on three machines, and has its troubles. It serves the metrics of each machine
// to Prometheus, until it is interrupted:
//
//	go run -C adapter ../otellock/demo
//	curl localhost:9464/web-1/metrics
//
// `make try-metrics` runs it with a Prometheus, as package try says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/sqllock/sqllock/otellock/demo/internal/workload"
)

func main() {
	listen := flag.String("listen", "localhost:9464", "the address of the metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, listen string) (err error) {
	folder, err := os.MkdirTemp("", "sqllock-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	w, err := workload.Open(ctx, filepath.Join(folder, "locks.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }() //nolint:contextcheck // ctx has ended by then

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	for _, machine := range workload.Machines {
		fmt.Fprintf(os.Stderr, "http://%s/%s/metrics\n", listener.Addr(), machine)
	}
	server := &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	w.Run(ctx, func(trouble string) { log.Print(trouble) })
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
