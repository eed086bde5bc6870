package errtext_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
)

func TestAnErrorIsOneLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{errors.Join(errors.New("one"), errors.New("two")), "one; two"},
		{errors.New("head:\n\tone\r\n\n\ttwo\n"), "head: one; two"},
		{errors.New("a\tb"), "a b"},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, context.Canceled), "context deadline exceeded"},
		{fmt.Errorf("ask: %w: %w: refused", context.DeadlineExceeded, context.DeadlineExceeded), "ask: context deadline exceeded: refused"},
		{context.Canceled, "context canceled"},
	} {
		if got := errtext.Line(test.err); got != test.want {
			t.Errorf("%q becomes %q, want %q", test.err, got, test.want)
		}
	}
}

func TestTheMiddleOfALongTextIsLeftOut(t *testing.T) {
	t.Parallel()
	const whole = "head: "
	for _, test := range []struct {
		text string
		want string // "": all of it
	}{
		{whole + strings.Repeat("x", 3990) + "tail", ""},
		{whole + strings.Repeat("x", 10_000_000) + "tail", whole + strings.Repeat("x", 2994) + "… (9996010 bytes are left out) …" + strings.Repeat("x", 996) + "tail"},
		{strings.Repeat("ä", 2500), strings.Repeat("ä", 1500) + "… (1000 bytes are left out) …" + strings.Repeat("ä", 500)},
		{"h" + strings.Repeat("ä", 2500), "h" + strings.Repeat("ä", 1499) + "… (1002 bytes are left out) …" + strings.Repeat("ä", 500)},
		{strings.Repeat("\x80", 4001), strings.Repeat("\x80", 3000) + "… (1 bytes are left out) …" + strings.Repeat("\x80", 1000)},
	} {
		if got, want := errtext.Line(errors.New(test.text)), cmp.Or(test.want, test.text); got != want {
			t.Errorf("%d bytes become %d: %.40q…%q", len(test.text), len(got), got, got[max(0, len(got)-40):])
		}
	}
}

func TestWhatAServerHasAnsweredComesFirst(t *testing.T) {
	t.Parallel()
	const head = "failed to connect to `user=u database=d`:"
	const refused = "127.0.0.1:1 (h): dial error: connection refused"
	const noTLS = "127.0.0.1:2 (h): tls error: server refused TLS connection"
	const wrong = `127.0.0.1:2 (h): failed SASL auth: FATAL: password authentication failed for user "u" (SQLSTATE 28P01)`
	for text, want := range map[string]string{
		head + " " + refused:                                                         head + " " + refused,
		head + "\n\t" + noTLS + "\n\t" + wrong:                                       head + " " + wrong,
		head + "\n\t" + noTLS + "\n\t" + noTLS:                                       head + " " + noTLS,
		head + "\n\t" + refused + "\n\t" + refused:                                   head + " " + refused,
		head + "\n\t" + refused + "\n\t" + refused + "\n\t" + noTLS + "\n\t" + wrong: head + " " + wrong + "; " + refused,
	} {
		if got := errtext.Attempts(text); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", text, got, want)
		}
	}
}
