// Package conn has the connections of a Locker to its database: two small pools, one of them for renewals, which lend
// connections to each other when the server has none left. A connection is opened under no caller's context, behaves
// alike whatever the DSN or the server's defaults say, and tells whether a pooler, a Galera node or MariaDB answers.
package conn
