package connector_test

import (
	"database/sql"
	"database/sql/driver"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/sqltest"
)

func TestHostsShareTheTimeToConnect(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]time.Duration{
		"postgres://a/db":                                  0,
		"postgres://a,b/db":                                6 * time.Second,
		"postgres://a:1,a:2,a:3/db?sslmode=disable":        4 * time.Second,
		"host=a,b sslmode=prefer":                          6 * time.Second,
		"host=a,b connect_timeout=2":                       2 * time.Second,
		"postgres://a,b/db?connect_timeout=2&user=someone": 2 * time.Second,
	} {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		connector.ShareTime(config, 12*time.Second)
		if config.ConnectTimeout != want {
			t.Errorf("%s: each has %v; want %v", dsn, config.ConnectTimeout, want)
		}
	}
}

// silentHost accepts connections and says nothing.
func silentHost(t *testing.T) (address string, accepted func() int) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	n := 0
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
			running.Go(func() {
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func TestASilentHostLeavesTimeToTheNext(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	frozen, accepted := silentHost(t)
	dsn := strings.Replace(db.DSN, "@", "@"+frozen+",", 1)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	byConfig := stdlib.OpenDB(*config)
	defer byConfig.Close()
	byDSN, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer byDSN.Close()
	for how, db := range map[string]*sql.DB{"a configuration": byConfig, "a DSN": byDSN} {
		c, err := connector.Of(db)
		if err != nil {
			t.Fatal(err)
		}
		before := accepted()
		var dc driver.Conn
		if dc, err = connector.Sharing(c, 2*time.Second).Connect(t.Context()); err != nil {
			t.Errorf("%s: %v", how, err)
			continue
		}
		if accepted() == before {
			t.Errorf("%s: the silent host was not asked first", how)
		}
		if err := dc.Close(); err != nil {
			t.Error(err)
		}
	}
}
