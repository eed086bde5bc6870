// Package locktest is the conformance suite of the backends: tests for the behavior that every kind of lock must have
// on every server.
//
// A backend calls [Exercise] once for each server and each way to open a Locker. Its tests use only sqllock.Locker and
// sqllock.Lock; the differences between backends are [Options]. No test waits for time to pass: it waits for an event,
// with a time limit.
//
// [Sessions] tests the common behavior of session locks on every server; the differences are a [Database]. Only its
// tests of the session TTL wait for time to pass.
//
// [Bench] has the benchmarks that session locks share.
package locktest
