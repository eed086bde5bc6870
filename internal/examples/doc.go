// Package examples has the Go code of the README, compiled. It has nothing but tests.
package examples
