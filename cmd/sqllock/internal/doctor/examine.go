package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/errtext"
	"github.com/sqllock/sqllock/internal/cluster"
	"github.com/sqllock/sqllock/schema"
)

// Time limits. Connecting has one of its own, which the URL can shorten.
const (
	connectLimit  = 20 * time.Second
	questionLimit = 10 * time.Second
)

// Target is the database to examine.
type Target struct {
	DB      *sqlx.DB // on PostgreSQL it prepares no statements
	Dialect schema.Dialect
	Tables  schema.Tables
	Open    func(context.Context) error              // connects, and creates the file and the tables of SQLite
	Now     func(context.Context) (time.Time, error) // the time of the database's clock

	// PostgreSQL: the addresses in the URL, whether the URL asks for a primary or another kind of server, and how long
	// connecting to one address may take.
	Hosts          []string
	AsksRole       bool
	ConnectTimeout time.Duration
}

// patient is the database under examination, and what is known about it.
type patient struct {
	Target
	Report
	depends map[kind][]Finding // the findings that each kind of lock depends on

	engine   string // the name of a server that only speaks the protocol; empty: PostgreSQL, MySQL or MariaDB
	pooler   pooling
	noTables bool
}

// kind is a set of kinds of lock.
type kind int

const (
	lease kind = 1 << iota
	session
	transaction

	none  = kind(0)
	every = lease | session | transaction
)

// check is one question. A Finding without a level means that there is nothing to report.
type check struct {
	id       string
	concerns kind // the kinds of lock that depend on the answer
	ask      func(context.Context, *patient) (Finding, error)
}

// Examine runs all checks on a database. A check that fails is reported as a finding, too.
func Examine(ctx context.Context, t Target) Report {
	p := &patient{Target: t, depends: make(map[kind][]Finding)}
	if connected := p.connect(ctx); connected.Level != OK {
		p.Findings = []Finding{connected}
		for _, v := range verdicts {
			p.Verdicts = append(p.Verdicts, Finding{ID: v.id, Level: Fail, Text: "not known: the database cannot be reached"})
		}
		return p.Report
	}
	for _, c := range map[schema.Dialect][]check{
		schema.Postgres: postgresChecks, schema.MySQL: mysqlChecks, schema.SQLite: sqliteChecks,
	}[t.Dialect] {
		p.note(c.id, c.concerns, p.ask(ctx, c.ask))
	}
	for _, v := range verdicts {
		f := p.ask(ctx, v.ask)
		f.ID = v.id
		p.Verdicts = append(p.Verdicts, f)
	}
	return p.Report
}

// connect opens the database, and reports why that fails if it does.
func (p *patient) connect(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	err := p.Open(ctx)
	if err == nil {
		return fine("")
	}
	f := bad(p.connectAdvice(err), "it cannot be used: %s", oneLine(err))
	f.ID = "connect"
	return f
}

// ask runs one check. Its error becomes a finding, and does not affect the other checks.
func (p *patient) ask(ctx context.Context, question func(context.Context, *patient) (Finding, error)) Finding {
	ctx, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	f, err := question(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return beware("ask again, when the server has less to do, and nobody keeps the tables locked", "there was no answer within %v", questionLimit)
	case err != nil:
		return beware("let this user see it, or ask as one who may", "it cannot be found out: %s", oneLine(err))
	}
	return f
}

func (p *patient) note(id string, concerns kind, f Finding) {
	if f.Level == "" {
		return
	}
	f.ID = id
	p.Findings = append(p.Findings, f)
	for _, k := range []kind{lease, session, transaction} {
		if (concerns|f.also)&k != 0 {
			p.depends[k] = append(p.depends[k], f)
		}
	}
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(errtext.Line(err)), " ") }

// settings reads settings of the server. It leaves out those that the server does not have.
func (p *patient) settings(ctx context.Context, names ...string) (map[string]string, error) {
	query := "SELECT name, setting FROM pg_settings WHERE name IN (%s)"
	if p.Dialect == schema.MySQL {
		query = "SHOW GLOBAL VARIABLES WHERE Variable_name IN (%s)"
	}
	return p.pairs(ctx, fmt.Sprintf(query, "'"+strings.Join(names, "', '")+"'"))
}

// pairs runs a query that returns names and values.
func (p *patient) pairs(ctx context.Context, query string) (map[string]string, error) {
	return cluster.Read(ctx, p.DB, query)
}
