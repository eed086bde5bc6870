package locktest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// EndsWithARefusedCertificate tests that a wait on PostgreSQL ends when the server refuses the certificate of its client.
func EndsWithARefusedCertificate(t *testing.T, open func(dsn string) (Locker, error)) {
	t.Helper()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for why, dsn := range refusedCertificates(t, version) {
			t.Run(tls.VersionName(version)+", "+why, func(t *testing.T) {
				t.Parallel()
				l, err := open(dsn)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close() })
				ctx := endingIn(t, soon)
				if _, err := l.Acquire(ctx, "x"); err == nil || ctx.Err() != nil || sqllock.IsRetryable(err) {
					t.Errorf("Acquire: %v", err)
				}
			})
		}
	}
}

// refusedCertificates starts a server that speaks the protocol of PostgreSQL up to TLS, of one version, and there wants the
// certificate of a client. It returns DSNs of clients that it refuses, by why it does.
func refusedCertificates(t *testing.T, version uint16) (dsns map[string]string) {
	t.Helper()
	ours, theirs := newAuthority(t), newAuthority(t)
	trusted := x509.NewCertPool()
	trusted.AddCert(ours.Leaf)
	config := &tls.Config{
		Certificates: []tls.Certificate{issue(t, ours, time.Now().Add(time.Hour))}, MinVersion: version, MaxVersion: version,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted,
	}
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // the test is over
			}
			go refuse(t.Context(), c, config)
		}
	}()
	plain := "postgres://somebody@" + l.Addr().String() + "/x?sslmode=require"
	dsns = map[string]string{
		"it has expired":   plain + saved(t, issue(t, ours, time.Now().Add(-time.Hour))),
		"it is of another": plain + saved(t, issue(t, theirs, time.Now().Add(time.Hour))),
	}
	if version >= tls.VersionTLS13 { // before, the alert is that of any handshake that failed
		dsns["there is none"] = plain
	}
	return dsns
}

// refuse answers a client's request for TLS, and lets the handshake fail. It reads on until the client leaves: otherwise the
// client may see a reset, and not the alert.
func refuse(ctx context.Context, c net.Conn, config *tls.Config) {
	defer func() { _ = c.Close() }()
	request := make([]byte, 8)
	if _, err := io.ReadFull(c, request); err != nil {
		return
	}
	if _, err := c.Write([]byte("S")); err != nil {
		return
	}
	if tls.Server(c, config).HandshakeContext(ctx) != nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

func newAuthority(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(1, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	return signed(t, about, about, key, key)
}

// issue returns a certificate for a server and for a client, which is good until then.
func issue(t *testing.T, authority tls.Certificate, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "somebody"}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	return signed(t, about, authority.Leaf, key, authority.PrivateKey)
}

func signed(t *testing.T, about, by *x509.Certificate, key *ecdsa.PrivateKey, byKey any) tls.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, about, by, key.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// saved returns the parameters of a DSN with which a client shows the certificate.
func saved(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var parameters strings.Builder
	for parameter, block := range map[string]*pem.Block{
		"sslcert": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}, "sslkey": {Type: "PRIVATE KEY", Bytes: key},
	} {
		file := filepath.Join(folder, parameter+".pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		parameters.WriteString("&" + parameter + "=" + url.QueryEscape(file))
	}
	return parameters.String()
}
