package leasetable

import "context"

// orLeave has start run f, and returns what f returned. If ctx ends first it reports that, and late gets the result
// of f. On an error f was not run.
func orLeave[T any](ctx context.Context, start func(func()) error, f func() T, late func(T)) (v T, left bool, err error) {
	done, gone := make(chan T), make(chan struct{})
	err = start(func() {
		v := f()
		select {
		case done <- v:
		case <-gone:
			late(v)
		}
	})
	if err != nil {
		return v, false, err
	}
	select {
	case v = <-done:
		return v, false, nil
	case <-ctx.Done():
		close(gone)
		return v, true, nil
	}
}
