package console

import (
	"runtime"
	"slices"
	"strings"
)

// Getenv returns the value of an environment variable, or "".
func (c *Console) Getenv(key string) string {
	value, _ := c.LookupEnv(key)
	return value
}

// LookupEnv returns the value of an environment variable, and whether it is set.
func (c *Console) LookupEnv(key string) (value string, set bool) {
	return lookup(runtime.GOOS, c.Environ, key)
}

// EnvironWithout returns a copy of the environment without some variables.
func (c *Console) EnvironWithout(keys ...string) []string {
	return without(runtime.GOOS, c.Environ, keys)
}

// lookup finds the last pair of a key: the one that a command started with this environment gets.
func lookup(system string, environ []string, key string) (value string, set bool) {
	for _, pair := range environ {
		if k, v, ok := strings.Cut(pair, "="); ok && sameKey(system, k, key) {
			value, set = v, true
		}
	}
	return value, set
}

func without(system string, environ, keys []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(pair string) bool {
		k, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(keys, func(key string) bool { return sameKey(system, k, key) })
	})
}

// sameKey reports whether two keys are of one variable on a system, which is named as by runtime.GOOS.
func sameKey(system, a, b string) bool {
	return a == b || system == "windows" && strings.EqualFold(a, b)
}
