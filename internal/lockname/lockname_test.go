package lockname_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/lockname"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "\x00", "\xff", " ", strings.Repeat("x", 1024)} {
		if err := lockname.Check(name); err != nil {
			t.Errorf("Check(%.10q) = %v", name, err)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", 1025)} {
		if err := lockname.Check(name); !errors.Is(err, sqllock.ErrName) {
			t.Errorf("Check(%.10q) = %v", name, err)
		}
	}
}
