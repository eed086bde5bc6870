// Package oddserver starts test servers that are not simply a primary: a standby, and the nodes of a Galera cluster.
package oddserver
