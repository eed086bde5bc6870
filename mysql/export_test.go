package mysql

// Refuse is refuse: the servers that it refuses are clusters, which a test does not start.
var Refuse = refuse
