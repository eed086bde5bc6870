//go:build !sqltest_no_postgres

package sqltest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// verifier returns what PostgreSQL keeps of a password (RFC 5803), and takes in its place. It is that of a single
// iteration: a client repeats them for each connection, and a random password does not need the usual 4,096.
// https://www.postgresql.org/docs/current/catalog-pg-authid.html
func verifier(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	salted := keyed([]byte(password), append(salt, 0, 0, 0, 1))
	stored := sha256.Sum256(keyed(salted, []byte("Client Key")))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode(salt), encode(stored[:]), encode(keyed(salted, []byte("Server Key"))))
}

func keyed(key, text []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(text)
	return h.Sum(nil)
}
