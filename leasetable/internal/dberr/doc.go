// Package dberr says what an error of a statement means: whether the statement may have taken effect, and whether to
// repeat it.
package dberr
