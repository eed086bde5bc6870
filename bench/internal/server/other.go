package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sqllock/sqllock/bench/internal/child"
	"github.com/sqllock/sqllock/bench/internal/lock"
)

// program is a server program with a folder and a port of its own.
type program struct {
	folder, host string
	cmd          *exec.Cmd
}

// startProgram starts a program, and waits until ready succeeds.
func startProgram(ctx context.Context, ready func(p *program) error, name string, args func(p *program) []string) (*program, error) {
	folder, err := os.MkdirTemp("", "sqllock-bench-")
	if err != nil {
		return nil, err
	}
	p := &program{folder: folder}
	if p.host, err = freeHost(ctx); err != nil {
		return nil, err
	}
	output, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	p.cmd = exec.Command(name, args(p)...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = output, output, folder
	child.DieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for err = ready(p); err != nil; err = ready(p) {
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(output.Name())
			p.end()
			return nil, fmt.Errorf("%s does not answer: %w\n%s", name, err, text)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return p, nil
}

func (p *program) end() {
	_ = p.cmd.Process.Kill() // its data are of no use to anybody
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.folder)
}

func freeHost(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// startRedis starts Redis as a cache is run: in memory. What it has granted is lost in a crash.
func startRedis(ctx context.Context) (*Server, error) {
	var c *redis.Client
	p, err := startProgram(ctx, func(p *program) error {
		if c == nil {
			c = redis.NewClient(&redis.Options{Addr: p.host, PoolSize: 1})
		}
		return c.Ping(ctx).Err()
	}, "redis-server", func(p *program) []string {
		_, port, _ := net.SplitHostPort(p.host)
		return []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", p.folder}
	})
	if err != nil {
		return nil, err
	}
	info := func(ctx context.Context, section, field string) (string, error) {
		text, err := c.Info(ctx, section).Result()
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, field+":"); ok {
				return strings.TrimSpace(value), nil
			}
		}
		return "", errors.Join(err, fmt.Errorf("INFO has no %s", field))
	}
	version, err := info(ctx, "server", "redis_version")
	if err != nil {
		p.end()
		return nil, err
	}
	asked := int64(0)
	return &Server{
		Engine: lock.Redis, Version: "Redis " + version + ", in memory", Address: p.host, host: p.host, root: p.cmd.Process.Pid,
		at: func(host string) string { return host },
		counter: func(ctx context.Context) (int64, error) {
			text, err := info(ctx, "stats", "total_commands_processed")
			if err != nil {
				return 0, err
			}
			n, err := strconv.ParseInt(text, 10, 64)
			asked++ // an INFO is counted after it has answered
			return n - asked + 1, err
		},
		end: func() { _ = c.Close(); p.end() },
	}, nil
}

// startEtcd starts a cluster of one member, with the default settings: every write is synced to the disk.
func startEtcd(ctx context.Context) (*Server, error) {
	get := func(p *program, path string, line func(string)) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.host+path, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		lines := bufio.NewScanner(answer.Body)
		for lines.Scan() {
			line(lines.Text())
		}
		return lines.Err()
	}
	peer, err := freeHost(ctx)
	if err != nil {
		return nil, err
	}
	p, err := startProgram(ctx, func(p *program) error { return get(p, "/health", func(string) {}) },
		"etcd", func(p *program) []string {
			return []string{
				"--data-dir", filepath.Join(p.folder, "data"), "--log-level", "error",
				"--listen-client-urls", "http://" + p.host, "--advertise-client-urls", "http://" + p.host,
				"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
				"--initial-cluster", "default=http://" + peer,
			}
		})
	if err != nil {
		return nil, err
	}
	version := ""
	err = get(p, "/version", func(line string) { _, version, _ = strings.Cut(line, `"etcdserver":"`) })
	if err != nil {
		p.end()
		return nil, err
	}
	version, _, _ = strings.Cut(version, `"`)
	return &Server{
		Engine: lock.Etcd, Version: "etcd " + version + ", one member", Address: p.host, host: p.host, root: p.cmd.Process.Pid,
		at: func(host string) string { return host },
		counter: func(context.Context) (total int64, err error) {
			err = get(p, "/metrics", func(line string) {
				if strings.HasPrefix(line, "grpc_server_msg_received_total{") {
					n, _ := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64) // what is no number counts nothing
					total += int64(n)
				}
			})
			return total, err
		},
		end: p.end,
	}, nil
}
