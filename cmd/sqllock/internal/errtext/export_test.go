package errtext

// Attempts is for tests.
var Attempts = attempts
