package commands

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/schema"
)

func schemaCommand(c *console.Console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, apply or check the tables of leases",
		Long:  flags.Help("The tables that leases live in.", flags.SeeAlso),
		Args:  flags.NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		schemaPrintCommand(c),
		schemaUseCommand(c, "apply", "Create the tables where they are missing", schema.Apply),
		schemaUseCommand(c, "check", "Say what is wrong with the tables, if anything is", checkTables),
	)
	return cmd
}

// checkLimit bounds schema check, which waits for nobody. What schema apply waits for may take long.
const checkLimit = 15 * time.Second

func checkTables(ctx context.Context, db *sql.DB, d schema.Dialect, t schema.Tables) error {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	err := schema.Check(ctx, db, d, t)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the database did not answer within %v: %w", checkLimit, err)
	}
	return err
}

// jsonSchema is the JSON output of the commands. jsonHelp describes it.
type jsonSchema struct {
	Dialect schema.Dialect `json:"dialect"`
	Version int            `json:"tables_version"`
	SQL     string         `json:"sql,omitempty"`
	OK      *bool          `json:"ok,omitempty"`
	Problem string         `json:"problem,omitempty"`
}

func schemaPrintCommand(c *console.Console) *cobra.Command {
	var p database.Flags
	var dialect string // empty: the dialect of the database
	asJSON := false
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL that creates the tables; no database is asked",
		Args:  flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, given := schema.Dialect(dialect), cmd.Flags().Changed
			if given("dialect") && (given("db") || given("db-file")) {
				return exit.With(exit.Usage, errors.New("--dialect is for use without a database: leave out --dialect, or --db and --db-file"))
			}
			if !given("dialect") {
				db, err := p.FindDatabase(cmd, c)
				if err != nil {
					return err
				}
				defer db.Close()
				d = db.Dialect
			}
			if err := p.ValidateTables(d); err != nil {
				return exit.With(exit.Usage, err)
			}
			if asJSON {
				var text strings.Builder
				if err := schema.Print(&text, d, p.Tables); err != nil {
					return err
				}
				return exit.With(exit.Output, console.WriteJSON(c.Stdout, jsonSchema{Dialect: d, Version: schema.Version, SQL: text.String()}, "  "))
			}
			return exit.With(exit.Output, schema.Print(c.Stdout, d, p.Tables))
		},
	}
	p.AddFlags(cmd)
	flags.AddChoice(cmd, &dialect, "dialect", "`dialect` of the SQL, instead of a database: postgres, mysql (MariaDB too) or sqlite",
		string(schema.Postgres), string(schema.MySQL), string(schema.SQLite))
	flags.AddJSON(cmd, &asJSON)
	return cmd
}

// schemaUseCommand returns a command that applies or checks the tables of a database.
func schemaUseCommand(
	c *console.Console, use, short string, do func(context.Context, *sql.DB, schema.Dialect, schema.Tables) error,
) *cobra.Command {
	var p database.Flags
	asJSON := false
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := p.OpenDatabase(cmd, c)
			if err != nil {
				return err
			}
			defer db.Close()
			if err := p.ValidateTables(db.Dialect); err != nil {
				return exit.With(exit.Usage, err)
			}
			if err := db.MakeFile(); err != nil {
				return exit.With(exit.Unavailable, err)
			}
			err = do(cmd.Context(), db.DB.DB, db.Dialect, p.Tables)
			if asJSON {
				ok := err == nil
				result := jsonSchema{Dialect: db.Dialect, Version: schema.Version, OK: &ok, Problem: console.Text(err)}
				if err := console.WriteJSON(c.Stdout, result, "  "); err != nil {
					return exit.With(exit.Output, err)
				}
			}
			return exit.With(exit.Unavailable, err)
		},
	}
	p.AddFlags(cmd)
	flags.AddJSON(cmd, &asJSON)
	return cmd
}
