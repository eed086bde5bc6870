package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Option asks for a special database or server. Its name says for which of them.
type Option func(*options)

type options struct {
	version    string
	settings   []setting
	extensions []string
	tls        bool
}

type setting struct{ name, value string }

func (s setting) String() string { return s.name + "=" + s.value }

func optionsOf(opts []Option) (o options) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Version asks for a version of the server: "16", or "10.11" for MariaDB. In Docker it is the tag of the image. Programs of this
// version must be installed, and a server named by a DSN must have it; otherwise the test fails and says what to do.
func Version(version string) Option {
	return func(o *options) { o.version = version }
}

// Setting gives a setting to a database or, with [Start], to a server. A database has it in every session that is opened with
// its DSN; on PostgreSQL it is one of the database, on MySQL and MariaDB a session variable, and on SQLite a pragma.
func Setting(name, value string) Option {
	return func(o *options) { o.settings = append(o.settings, setting{name, value}) }
}

// Extension makes an extension in a database of PostgreSQL. It must be installed on the server.
func Extension(name string) Option {
	return func(o *options) { o.extensions = append(o.extensions, name) }
}

// ofDatabase refuses what a database on a server of its own cannot have.
func (o options) ofDatabase() error {
	if o.version != "" {
		return errors.New("the version is that of the server: pass Version to Start")
	}
	return o.onSharedServer()
}

// onSharedServer refuses what the server of several tests cannot have.
func (o options) onSharedServer() error {
	if o.tls {
		return errors.New("a server with TLS belongs to one test: pass TLS to Start, and use the server's Database or Template.On")
	}
	return nil
}

// ofServer refuses what only a database can have.
func (o options) ofServer() error {
	if len(o.extensions) > 0 {
		return errors.New("an extension is one of a database: pass Extension to Server.Database or to Template.On")
	}
	return nil
}

// serverSettings returns the settings in the form of a server's options.
func (o options) serverSettings() (all []string) {
	for _, s := range o.settings {
		all = append(all, s.String())
	}
	return all
}

// wrongVersionError means that a server has another version than asked for.
type wrongVersionError struct {
	product product
	want    string
	found   server
}

func (e wrongVersionError) Error() string {
	p := e.product
	var do string
	switch e.found.source {
	case fromDocker:
		do = fmt.Sprintf("name an image of version %s: %s=docker:IMAGE", e.want, p.variable())
	case fromPrograms:
		do = fmt.Sprintf("install that version, and name its folder if there are several: %s=programs:FOLDER; or use Docker: %[1]s=docker", p.variable())
	case fromDSN:
		do = fmt.Sprintf("name a server of version %s, or use Docker: %s=docker", e.want, p.variable())
	}
	return fmt.Sprintf("the test wants %s %s, but this is %s; %s", p.title(), e.want, e.found, do)
}

// check returns an error if s has another version than wanted.
func (s server) check(version string) error {
	_, found, _ := strings.Cut(s.version, " ")
	if version == "" || found == version || strings.HasPrefix(found, version+".") {
		return nil
	}
	return wrongVersionError{s.product, version, s}
}

// ofVersion returns an image with another version in its tag, and the same variant, such as -alpine. One with a digest has a
// version already.
func ofVersion(image, version string) string {
	if strings.Contains(image, "@") {
		return image
	}
	slash, colon := strings.LastIndex(image, "/"), strings.LastIndex(image, ":")
	if colon <= slash {
		return image + ":" + version
	}
	variant := ""
	if _, after, ok := strings.Cut(image[colon+1:], "-"); ok {
		variant = "-" + after
	}
	return image[:colon+1] + version + variant
}

// dsn returns a database's DSN with the settings that are part of it.
func (o options) dsn(p product, dsn string) (string, error) {
	for _, s := range o.settings {
		var err error
		if dsn, err = p.with(dsn, s); err != nil {
			return "", err
		}
	}
	return dsn, nil
}

// furnish gives a new database what the options ask for.
func (o options) furnish(ctx context.Context, p product, db *sql.DB, name string) error {
	for _, s := range o.settings {
		if err := p.set(ctx, db, name, s); err != nil {
			return fmt.Errorf("the setting %s: %w (one of the server itself is for Start)", s.name, err)
		}
	}
	for _, extension := range o.extensions {
		if err := p.extend(ctx, db, extension); err != nil {
			return fmt.Errorf("the extension %s: %w", extension, err)
		}
	}
	if len(o.settings) == 0 {
		return nil
	}
	// What is wrong with a setting shows in a new session only.
	db.SetMaxIdleConns(0)
	defer db.SetMaxIdleConns(2)
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("the settings: %w", err)
	}
	return nil
}

func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string    { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

var number = regexp.MustCompile(`^-?[0-9.]+$`)
