package connector_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/sqllock/sqllock/internal/connector"
)

func TestAnAlertAboutACertificateIsToldFromOthers(t *testing.T) {
	t.Parallel()
	for alert, untrusted := range map[tls.AlertError]bool{
		40: false, // handshake failure
		42: true, 43: true, 44: true, 45: true, 46: true, 48: true, 116: true,
		70: false, // protocol version
		80: false, // internal error
	} {
		err := fmt.Errorf("connect: %w", &net.OpError{Op: "remote error", Err: alert})
		if connector.Untrusted(err) != untrusted {
			t.Errorf("%v: untrusted: %t", err, !untrusted)
		}
	}
	if !connector.Untrusted(&tls.CertificateVerificationError{Err: errors.New("expired")}) {
		t.Error("the certificate of a server is trusted")
	}
	for _, err := range []error{nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, &net.OpError{Op: "remote error"}} {
		if connector.Untrusted(err) {
			t.Errorf("%v is of a certificate", err)
		}
	}
}
