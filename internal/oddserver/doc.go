// Package oddserver starts test servers that are not simply a primary: a standby, the nodes of a Galera cluster, and a
// proxy that has lost its server.
package oddserver
