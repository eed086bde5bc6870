package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Network is a network namespace with one link to the rest of the machine. When it is cut off, the link drops the
// packets of both sides silently: no reset, no ICMP, no loss of carrier.
type Network struct {
	ip             string // the program ip
	name           string // sqllock-<process>-<number>: identifies the owner
	link           string // the name of the outer end of the link: sqllock<number>
	outside, inner string // the addresses of the two ends
}

const (
	innerLink = "outside"           // the name of the inner end of the link
	nobody    = "02:00:00:00:00:00" // a hardware address that neither end has
)

// NewNetwork creates a network that ends with the test. Without root's rights or without the program ip, the test is
// skipped; with CI=true it fails.
func NewNetwork(t *testing.T) *Network {
	t.Helper()
	n := &Network{}
	for _, name := range []string{"ip", "/usr/sbin/ip", "/sbin/ip"} {
		if path, err := exec.LookPath(name); err == nil {
			n.ip = path
			break
		}
	}
	switch {
	case n.ip == "":
		Impossible(t, "the program ip (of iproute2) is not installed")
	case os.Geteuid() != 0:
		Impossible(t, "a network namespace needs root's rights")
	}
	n.clean(t)
	for !n.make(t) {
	}
	t.Cleanup(func() {
		if err := n.remove(); err != nil {
			t.Error(err)
		}
	})
	n.must(t, "address", "add", n.outside+"/30", "dev", n.link)
	n.must(t, "link", "set", n.link, "up")
	n.must(t, "-n", n.name, "address", "add", n.inner+"/30", "dev", innerLink)
	n.must(t, "-n", n.name, "link", "set", innerLink, "up")
	return n
}

// make creates the namespace and the link. It returns false if their number is in use.
func (n *Network) make(t *testing.T) bool {
	t.Helper()
	number := rand.N(1 << 15)
	n.name, n.link = fmt.Sprintf("sqllock-%d-%d", os.Getpid(), number), fmt.Sprintf("sqllock%d", number)
	n.outside, n.inner = benchmarking(4*number+1), benchmarking(4*number+2)
	err := n.run(t.Context(), "netns", "add", n.name)
	if err == nil {
		err = n.run(t.Context(), "link", "add", n.link, "type", "veth", "peer", "name", innerLink, "netns", n.name)
		if err != nil {
			_ = n.run(t.Context(), "netns", "delete", n.name) // the namespace is useless without a link
		}
	}
	if err != nil && !strings.Contains(err.Error(), "File exists") {
		Impossible(t, err.Error())
	}
	return err == nil
}

// remove deletes the link and the namespace. The link must be deleted explicitly, because a socket in the namespace
// would keep it.
func (n *Network) remove() error {
	return errors.Join(
		n.run(context.Background(), "link", "delete", n.link),
		n.run(context.Background(), "netns", "delete", n.name),
	)
}

// clean removes the networks of killed test processes.
func (n *Network) clean(t *testing.T) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), n.ip, "netns", "list").Output()
	if err != nil {
		Impossible(t, err.Error())
	}
	for line := range strings.Lines(string(list)) {
		var process, number int
		if _, err := fmt.Sscanf(line, "sqllock-%d-%d", &process, &number); err != nil {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", process)); errors.Is(err, os.ErrNotExist) {
			left := &Network{ip: n.ip, name: fmt.Sprintf("sqllock-%d-%d", process, number), link: fmt.Sprintf("sqllock%d", number)}
			_ = left.remove() // another process may be removing it, too
		}
	}
}

// benchmarking returns an address of the block that is reserved for network tests (RFC 2544).
func benchmarking(i int) string { return fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255) }

// Impossible ends a test that this machine cannot run: it skips the test, and with CI=true it fails the test.
func Impossible(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Outside returns the machine's address as seen from the network.
func (n *Network) Outside() string { return n.outside }

// Command returns a command that runs in the network.
func (n *Network) Command(ctx context.Context, program string) *exec.Cmd {
	return exec.CommandContext(ctx, n.ip, "netns", "exec", n.name, program)
}

// Cut cuts the network off: each end sends its packets to a hardware address that the other end does not have, so they
// are dropped.
func (n *Network) Cut(t *testing.T) {
	t.Helper()
	n.must(t, "-n", n.name, "neighbor", "replace", n.outside, "dev", innerLink, "lladdr", nobody, "nud", "permanent")
	n.must(t, "neighbor", "replace", n.inner, "dev", n.link, "lladdr", nobody, "nud", "permanent")
}

// Heal lets the packets pass again.
func (n *Network) Heal(t *testing.T) {
	t.Helper()
	n.must(t, "neighbor", "delete", n.inner, "dev", n.link)
	n.must(t, "-n", n.name, "neighbor", "delete", n.outside, "dev", innerLink)
}

func (n *Network) must(t *testing.T, args ...string) {
	t.Helper()
	if err := n.run(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

func (n *Network) run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, n.ip, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
