// Package examples compiles the Go code of the README. It contains only tests.
package examples
