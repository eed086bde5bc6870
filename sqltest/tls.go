package sqltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"time"
)

// TLS gives a server of a test's own a certificate, for [Start]. The DSN of its databases has TLS on, and its driver checks the
// certificate. [Server.CA] is for other clients. The server also accepts connections without TLS, unless a setting of MySQL or
// MariaDB says otherwise: Setting("require_secure_transport", "ON").
//
// On MySQL and MariaDB the DSN refers to a configuration of the driver that only this process has.
func TLS() Option {
	return func(o *options) { o.tls = true }
}

// CA returns the file with the certificate, in PEM, of the authority that has signed the server's. It is empty without TLS.
func (s *Server) CA() string {
	if s.order.tls == nil {
		return ""
	}
	return s.srv.inst.file(caFile)
}

const (
	caFile   = "ca.pem"
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// certificates are the files of a server with TLS, in PEM.
type certificates struct{ ca, cert, key string }

// newCertificates makes an authority that is forgotten, and a certificate for servers on this machine and on that of a Docker
// daemon.
func newCertificates(endpoint string) (*certificates, error) {
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sqltest authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.AddDate(-10, 0, 0), NotAfter: now.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageCertSign, // the clock may be stepped
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "sqltest server"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{"localhost"},
	}
	hosts := []string{"127.0.0.1", "::1"}
	if host, ok := remoteHost(endpoint); ok {
		hosts = append(hosts, host)
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, host)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca, errCA := x509.CreateCertificate(rand.Reader, authority, authority, caKey.Public(), caKey)
	cert, errCert := x509.CreateCertificate(rand.Reader, server, authority, key.Public(), caKey)
	private, errKey := x509.MarshalPKCS8PrivateKey(key)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return &certificates{text("CERTIFICATE", ca), text("CERTIFICATE", cert), text("PRIVATE KEY", private)}, errors.Join(errCA, errCert, errKey)
}

// save writes the files of a server's folder.
func (c *certificates) save(inst *instance) error {
	return errors.Join(inst.write(caFile, c.ca), inst.write(certFile, c.cert), inst.write(keyFile, c.key))
}

// installCertificates is the script with which a container begins. It runs the image's own entry point afterwards.
const installCertificates = `set -e
mkdir -p "$SQLTEST_TLS"
(umask 077; printf %s "$SQLTEST_TLS_CA" >"$SQLTEST_TLS/ca.pem"; printf %s "$SQLTEST_TLS_CERT" >"$SQLTEST_TLS/cert.pem"
printf %s "$SQLTEST_TLS_KEY" >"$SQLTEST_TLS/key.pem")
chown "$0" "$SQLTEST_TLS"/*.pem
exec "$@"`

const containerTLS = "/etc/sqltest-tls"

// secure makes the container begin with the certificates.
func (c *container) secure(certs *certificates) error {
	found, err := c.client().InspectImage(c.run.Repository + ":" + c.run.Tag)
	if err != nil {
		return err
	}
	if len(found.Config.Entrypoint) == 0 {
		return errors.New("an image without an entry point cannot have TLS: name another one")
	}
	c.run.Entrypoint = append([]string{"sh", "-c", installCertificates, c.image.product.user()}, found.Config.Entrypoint...)
	c.run.Env = append(c.run.Env,
		"SQLTEST_TLS="+containerTLS, "SQLTEST_TLS_CA="+certs.ca, "SQLTEST_TLS_CERT="+certs.cert, "SQLTEST_TLS_KEY="+certs.key)
	return nil
}
