// Package locktest is the conformance suite of the backends: what every kind of lock on every
// server has to do, as tests.
//
// A backend calls [Exercise] once for each server and each way to open a Locker. Its tests
// only know sqllock.Locker and sqllock.Lock; what differs between backends comes in as
// [Options]. Nothing waits for time to pass: a test waits for the event, with a bound.
//
// [Sessions] is what session locks do alike on every server, as a database of each shows it: what
// differs comes in as a [Database]. Only what is about the session TTL waits for it to pass.
//
// [Bench] is the benchmarks that the session locks share.
package locktest
