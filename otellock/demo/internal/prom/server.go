// Package prom runs a Prometheus, and asks it.
package prom

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Interval is how often the Prometheus scrapes its targets, and evaluates its rules.
const Interval = 5 * time.Second

// Server is a Prometheus process.
type Server struct {
	url  string
	stop context.CancelFunc
	done chan error // gets the end of the process
	log  string     // the file of its output
}

// Start starts the program prometheus with a file of rules. The targets, instances by the path of their metrics, are at
// address. Data, configuration and log are in folder.
func Start(ctx context.Context, folder, rules, address string, targets map[string]string) (*Server, error) {
	rules, err := filepath.Abs(rules)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(config, []byte(configuration(rules, address, targets)), 0o600); err != nil {
		return nil, err
	}
	s := &Server{url: "http://" + port, done: make(chan error, 1), log: filepath.Join(folder, "prometheus.log")}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has it
	ctx, s.stop = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+config, "--web.listen-address="+port,
		"--storage.tsdb.path="+filepath.Join(folder, "data"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		s.stop()
		return nil, err
	}
	go func() { s.done <- cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the process.
func (s *Server) Stop() error {
	s.stop()
	err := <-s.done
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func configuration(rules, address string, targets map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %v, scrape_timeout: 4s, evaluation_interval: %[1]v}\n", Interval)
	fmt.Fprintf(&b, "rule_files: [%q]\nscrape_configs:\n  - job_name: demo\n    static_configs:\n", rules)
	for instance, path := range targets {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {instance: %q, __metrics_path__: %q}}\n", address, instance, path)
	}
	return b.String()
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// ready waits until the process answers.
func (s *Server) ready(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/-/ready", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.done:
			s.done <- err
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("prometheus: %w\n%s", err, text)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
