//go:build !race

package seeds

const fewer = 1 // see race.go
