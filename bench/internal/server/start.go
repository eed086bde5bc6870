package server

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// built is the image of MySQL that scripts/images builds where there is no registry.
const built = "sqltest/mysql:9.7"

// packages are the Debian packages of the servers, and the programs in them.
var packages = map[lock.Engine]struct{ name, program string }{
	lock.Postgres: {"postgresql", "/usr/lib/postgresql/*/bin/initdb"},
	lock.MariaDB:  {"mariadb-server", "/usr/sbin/mariadbd"},
	lock.Redis:    {"redis-server", "/usr/bin/redis-server"},
	lock.Etcd:     {"etcd-server", "/usr/bin/etcd"},
}

// Start starts all servers. PostgreSQL and MariaDB are those of Debian packages unless the environment says otherwise
// (see package sqltest), as Redis and etcd are, which are installed if they are missing. MySQL, of which Debian has no
// package, comes from Docker, and is left out if Docker has no image of it.
func Start(ctx context.Context) ([]*Server, error) {
	if err := choose(ctx); err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	engines := lock.Engines()
	servers, errs := make([]*Server, len(engines)), make([]error, len(engines))
	for i, e := range engines {
		if os.Getenv(variables[e]) == "skip" {
			continue
		}
		all.Go(func() {
			switch e {
			case lock.Redis:
				servers[i], errs[i] = startRedis(ctx)
			case lock.Etcd:
				servers[i], errs[i] = startEtcd(ctx)
			default:
				servers[i], errs[i] = startSQL(ctx, e)
			}
		})
	}
	all.Wait()
	var started []*Server
	for i, s := range servers {
		switch {
		case s != nil:
			started = append(started, s)
		case engines[i] == lock.MySQL && errs[i] != nil:
			log.Printf("left out: %v", errs[i])
			errs[i] = nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		for _, s := range started {
			s.End()
		}
		return nil, err
	}
	return started, nil
}

// choose says where the servers come from, and installs what is missing.
func choose(ctx context.Context) error {
	var missing []string
	for e, p := range packages {
		if variable := variables[e]; os.Getenv(variable) != "" {
			continue
		}
		if found, _ := filepath.Glob(p.program); len(found) == 0 {
			if _, err := exec.LookPath(filepath.Base(p.program)); err != nil {
				missing = append(missing, p.name)
			}
		}
	}
	if len(missing) > 0 {
		if err := install(ctx, missing); err != nil {
			return err
		}
	}
	for _, e := range []lock.Engine{lock.Postgres, lock.MariaDB} {
		if os.Getenv(variables[e]) == "" {
			if err := os.Setenv(variables[e], "programs"); err != nil {
				return err
			}
		}
	}
	if os.Getenv(variables[lock.MySQL]) != "" {
		return nil
	}
	source := "docker" // sqltest's own image of MySQL, if it is here or can be pulled
	if exec.CommandContext(ctx, "docker", "image", "inspect", built).Run() == nil {
		source = "docker:" + built
	}
	return os.Setenv(variables[lock.MySQL], source)
}

// variables say to package sqltest where a server comes from.
var variables = map[lock.Engine]string{
	lock.Postgres: "SQLTEST_POSTGRES", lock.MariaDB: "SQLTEST_MARIADB", lock.MySQL: "SQLTEST_MYSQL",
}

// install installs Debian packages, if this user may do that.
func install(ctx context.Context, names []string) error {
	sudo := []string{}
	if os.Geteuid() != 0 {
		sudo = []string{"sudo", "-n"}
	}
	log.Printf("installing %v", names)
	for _, command := range [][]string{
		{"apt-get", "update", "-q"},
		append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-q", "-y", "--no-install-recommends"}, names...),
	} {
		command = append(sudo, command...)
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("these Debian packages are missing, and cannot be installed: %v: %w\n%s", names, err, out)
		}
	}
	return nil
}
