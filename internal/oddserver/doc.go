// Package oddserver starts the servers of tests that are not simply a primary: a standby, and nodes
// of a Galera cluster.
package oddserver
