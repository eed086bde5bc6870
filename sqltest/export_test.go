package sqltest

import "context"

// OfVersion shows how the image of a version is named.
var OfVersion = ofVersion

// Credentials shows with which credentials an image is pulled.
var Credentials = credentials

// PoolerLines shows the configuration of a PgBouncer, and whether clients can use prepared statements.
func PoolerLines(knowsPrepared bool, opts ...Option) (lines []string, prepared bool) {
	return poolerLines(optionsOf(opts).settings, knowsPrepared)
}

// MakeGoods is a migration in another package than that of the tests.
func MakeGoods(ctx context.Context, db *Database) error {
	_, err := db.ExecContext(ctx, "CREATE TABLE goods (n int)")
	return err
}

// Redact shows what failures and logs say of a text, where dsn names the server.
func Redact(e Engine, dsn, text string) string {
	p, _ := productOf(e)
	return redact(p, dsn, text)
}

// PublicDSN shows what a log says of a DSN.
func PublicDSN(e Engine, dsn string) string {
	p, _ := productOf(e)
	return publicDSN(p, dsn)
}
