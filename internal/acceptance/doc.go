// Package acceptance has the tests that start several processes and let them meet on one
// database, as deployments do. It has nothing but tests.
package acceptance
