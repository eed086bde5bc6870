package dberr

func OutcomeKnown(error) bool { return false }
