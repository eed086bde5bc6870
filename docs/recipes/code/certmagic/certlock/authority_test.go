package certlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
)

// authority is a certificate authority that counts its certificates.
type authority struct {
	issued  atomic.Int64
	issuing func(context.Context) // is called for each of them
}

func (a *authority) IssuerKey() string { return "test" }

func (a *authority) Issue(ctx context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.issued.Add(1)
	a.issuing(ctx)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.AddDate(1, 0, 0), IsCA: true}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: now, NotAfter: now.AddDate(0, 3, 0), DNSNames: request.DNSNames}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, request.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}
