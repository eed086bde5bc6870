// Command server serves HTTPS on one of many machines, which share a folder of certificates.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	"github.com/caddyserver/certmagic"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/docs/recipes/code/certmagic/certlock" // what you have saved above
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

func main() {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err == nil {
		err = serve(db, http.FileServer(http.Dir("/srv/site")))
	}
	log.Fatal(err)
}

func serve(db *sql.DB, site http.Handler) error {
	if err := schema.Apply(context.Background(), db, schema.Postgres, schema.Tables{}); err != nil { // the tables of leases
		return err
	}
	leases, err := leasetable.FromDB(db)
	if err != nil {
		return err
	}
	defer leases.Close()

	// All machines have the same folder. Without the address certmagic asks for it on the terminal.
	certmagic.Default.Storage = certlock.New(&certmagic.FileStorage{Path: "/srv/certificates"}, leases)
	certmagic.DefaultACME.Email = "you@example.com"
	return certmagic.HTTPS([]string{"example.com"}, site)
}
