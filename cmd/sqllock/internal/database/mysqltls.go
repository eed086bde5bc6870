package database

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"

	gomysql "github.com/go-sql-driver/mysql"
)

// authority is the parameter that names a file with the certificates that sign for the server, as in URLs of MySQL Shell
// and in mysql --ssl-ca. The driver has none: a Go program registers a configuration, which a command line cannot. The
// certificates of managed databases are often signed by an authority that no machine trusts.
const authority = "ssl-ca"

// trustFile makes connections check the server by the certificates in the file of the parameter, and by no others.
func trustFile(config *gomysql.Config) error {
	name, given := config.Params[authority]
	if !given {
		return nil
	}
	delete(config.Params, authority)
	if config.TLSConfig != "" && config.TLSConfig != "true" || config.AllowFallbackToPlaintext {
		return errors.New("the MySQL URL or DSN has ssl-ca, and a tls or allowFallbackToPlaintext by which the server is not checked: leave that out")
	}
	pem, err := os.ReadFile(name) //nolint:gosec // the user names the file
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if err != nil {
		return fmt.Errorf("the file of ssl-ca in the MySQL URL or DSN cannot be read: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return errors.New("the file of ssl-ca in the MySQL URL or DSN has no certificate in PEM form")
	}
	config.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12} // Clone and NewConnector add the host to check
	return nil
}
