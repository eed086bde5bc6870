// Package dburl knows what the URL of a database may give away.
package dburl

import (
	"regexp"
	"strings"
)

// databaseURL matches the URL of a database: its scheme, the user, password, hosts and ports, and the rest.
var databaseURL = regexp.MustCompile(`(?s)^(?i:(postgres|mysql|mariadb)(?:ql)?)://([^/?#]*)(.*)$`)

// IsMisread reports whether a parser may take a part of the password of a database URL for a host or a database, which errors
// show: the password has a / ? or # or, in a URL of PostgreSQL, an @. These have to be percent-encoded. So has an @ after
// the host, as in ?application_name=a@b: it could be the end of a password.
func IsMisread(url string) bool {
	part := databaseURL.FindStringSubmatch(url)
	return part != nil && (strings.Contains(part[3], "@") || strings.EqualFold(part[1], "postgres") && strings.Count(part[2], "@") > 1)
}
