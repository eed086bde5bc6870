package sqltest

// OfVersion shows how the image of a version is named.
var OfVersion = ofVersion

// PoolerLines shows the configuration of a PgBouncer, and whether clients can use prepared statements.
func PoolerLines(knowsPrepared bool, opts ...Option) (lines []string, prepared bool) {
	return poolerLines(optionsOf(opts).settings, knowsPrepared)
}
