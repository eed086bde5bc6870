// Package examples compiles the Go code of the README, but for that of the adapters, which they compile themselves. It
// contains only tests, and in start and lease the programs of docs/start.md.
package examples
