package sqltest

import (
	"errors"
	"net/url"
	"strings"
)

const hidden = "xxxxx"

// redact hides the password of dsn in a text that may contain it.
func redact(p product, dsn, text string) string {
	if strings.Contains(text, dsn) {
		text = strings.ReplaceAll(text, dsn, publicDSN(p, dsn))
	}
	_, password, err := p.parse(dsn)
	if err != nil || password == "" {
		return text
	}
	for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password), escapedUserinfo(password)} {
		text = strings.ReplaceAll(text, form, hidden)
	}
	return text
}

func redactError(p product, dsn string, err error) error {
	if err == nil {
		return nil
	}
	text := redact(p, dsn, err.Error())
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// publicDSN returns dsn without its password, or nothing of dsn in case of doubt.
func publicDSN(p product, dsn string) string {
	_, password, err := p.parse(dsn)
	switch {
	case err != nil:
		return hidden
	case password == "":
		return dsn
	}
	for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password), escapedUserinfo(password)} {
		dsn = strings.ReplaceAll(dsn, form, hidden)
	}
	if _, again, err := p.parse(dsn); err != nil || again == password {
		return hidden // in an unknown spelling
	}
	return dsn
}

func escapedUserinfo(password string) string {
	return strings.TrimPrefix(url.UserPassword("", password).String(), ":")
}
