package sqltest

import (
	"errors"
	"net/url"
	"strings"
)

const hidden = "xxxxx"

// redact hides the password of dsn in a text that may contain it: where it stands as a password, and elsewhere unless it is so
// short or so common a word that this would spoil the text.
func redact(p product, dsn, text string) string {
	public := publicDSN(p, dsn)
	text = strings.ReplaceAll(text, dsn, public)
	_, password, err := p.parse(dsn)
	if err != nil || password == "" {
		return text
	}
	text = hide(text, password)
	if len(password) < 8 || strings.Contains(public+" sqltest_template password", password) {
		return text
	}
	for _, form := range forms(password) {
		text = strings.ReplaceAll(text, form, hidden)
	}
	return text
}

// hide hides a password in the DSNs and settings of a text.
func hide(text, password string) string {
	for _, form := range forms(password) {
		text = strings.ReplaceAll(text, ":"+form+"@", ":"+hidden+"@")
		for _, before := range []string{"password=", "password='", "PASSWORD=", "PWD="} {
			text = strings.ReplaceAll(text, before+form, before+hidden)
		}
	}
	return text
}

// forms returns the ways to write a password.
func forms(password string) []string {
	return []string{password, url.QueryEscape(password), url.PathEscape(password), escapedUserinfo(password)}
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
	public := hide(dsn, password)
	if _, shown, err := p.parse(public); err != nil || shown != hidden {
		return hidden // in an unknown spelling
	}
	return public
}

func escapedUserinfo(password string) string {
	return strings.TrimPrefix(url.UserPassword("", password).String(), ":")
}
