// Package locktest is the conformance suite of the backends: what every kind of lock on every
// server has to do, as tests.
//
// A backend calls [Exercise] once for each server and each way to open a Locker. Its tests
// only know sqllock.Locker and sqllock.Lock; what differs between backends comes in as
// [Options]. Nothing waits for time to pass: a test waits for the event, with a bound.
//
// [Bench] is the benchmarks that the session locks share.
package locktest
