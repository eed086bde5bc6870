package run

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestACommandIsKilledBeforeOthersCanTakeALostLock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want  time.Duration
		flags []string
	}{
		{1875 * time.Millisecond, nil},
		{time.Second, []string{"--ttl", "8s"}},
		{10 * time.Second, []string{"--ttl", "1h", "--kind", "session"}},
		{time.Hour, []string{"--kill-after", "1h"}},
		{0, []string{"--kill-after", "0"}},
	} {
		var r request
		cmd := &cobra.Command{}
		r.AddFlags(cmd)
		err := cmd.ParseFlags(slices.Concat(test.flags, []string{"x", "--", "true"}))
		if err == nil {
			err = r.parse(cmd, cmd.Flags().Args())
		}
		if err != nil || r.killAfter != test.want {
			t.Errorf("%q: SIGKILL comes after %v, want %v; error %v", test.flags, r.killAfter, test.want, err)
		}
	}
}
