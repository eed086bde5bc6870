package certlock_test

import (
	"database/sql"
	"net/http"

	"github.com/caddyserver/certmagic"

	certlock "github.com/sqllock/sqllock/docs/recipes/code/certmagic"
	"github.com/sqllock/sqllock/leasetable"
)

// serve serves HTTPS. All machines call it, with the same folder.
func serve(db *sql.DB, site http.Handler) error {
	leases, err := leasetable.FromDB(db)
	if err != nil {
		return err
	}
	defer leases.Close()

	certmagic.Default.Storage = certlock.New(&certmagic.FileStorage{Path: "/srv/certificates"}, leases)
	return certmagic.HTTPS([]string{"example.com"}, site)
}

var _ = serve // it needs port 443
