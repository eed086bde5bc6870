// Package acceptance has the tests that start several processes on one database, as deployments do. It contains only
// tests.
package acceptance
