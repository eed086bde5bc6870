package main

import (
	"net"
	"net/url"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/netfault"
	"github.com/sqllock/sqllock/sqltest"
)

// elsewhere returns an address of this machine that others know it by.
func elsewhere(t *testing.T) net.IP {
	t.Helper()
	all, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP
		}
	}
	t.Skip("this machine is on no network")
	return nil
}

func TestTheDoctorFindsConnectionsInClearText(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	host := elsewhere(t)
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			db := sqltest.Start(t, engine, sqltest.TLS()).Database(t)
			var u *url.URL
			plain, encrypted, protocol := "", "tls=skip-verify", netfault.Protocol(netfault.MySQL)
			if engine == sqltest.EnginePostgres {
				plain, encrypted, protocol = "sslmode=disable", "sslmode=require", netfault.Postgres
				var err error
				u, err = url.Parse(db.DSN)
				must(t, err)
			} else {
				config, err := gomysql.ParseDSN(db.DSN)
				must(t, err)
				u = &url.URL{Scheme: "mysql", User: url.UserPassword(config.User, config.Passwd), Host: config.Addr, Path: config.DBName}
			}
			near, far := u.Host, netfault.NewOn(t, host.String(), netfault.TCP(u.Host), protocol).Address()
			for _, test := range []struct {
				host, query, says string
				clear             bool
			}{
				{near, plain, "none, and the connection does not leave this machine", false},
				{far, encrypted, "the connection is encrypted", false},
				{far, plain, "none: who is between here and the server", !host.IsPrivate()},
			} {
				u.Host, u.RawQuery = test.host, test.query
				call(t, on(t, u.String()), 0, nil, "schema", "apply")
				want := wellAt(engine)
				want.says = append(want.says, test.says)
				if test.clear {
					want.code = exitMind
					if want.unwell == nil {
						want.unwell = make(levels)
					}
					want.unwell["encryption"] = warn
				}
				mustFind(t, u.String(), want)
			}
		})
	}
}
