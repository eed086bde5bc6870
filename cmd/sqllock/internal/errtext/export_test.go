package errtext

// Attempts exports attempts for tests.
var Attempts = attempts
