package connector

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
)

// ofCertificates are the alerts by which a server refuses the certificate of a client, or the lack of one (RFC 8446,
// section 6.2): bad, unsupported, revoked, expired, unknown, of an unknown authority, required. The last one is of TLS 1.3;
// before, a lack of one is a handshake that failed, as much else is.
var ofCertificates = []tls.AlertError{42, 43, 44, 45, 46, 48, 116}

// Untrusted reports whether a connection could not be opened because of a certificate: the client does not trust that of
// the server, or the server refuses that of the client. Package tls does not export the type of an alert that it has
// received, so Untrusted compares texts. From TLS 1.3 on a server refuses in answer to what the client sends next, and the
// driver of MySQL replaces the error of that by another.
func Untrusted(err error) bool {
	if ofServer := (*tls.CertificateVerificationError)(nil); errors.As(err, &ofServer) {
		return true
	}
	received := (*net.OpError)(nil)
	return errors.As(err, &received) && received.Op == "remote error" && received.Err != nil &&
		slices.ContainsFunc(ofCertificates, func(alert tls.AlertError) bool { return alert.Error() == received.Err.Error() })
}
