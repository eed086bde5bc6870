package main

import (
	"context"
	"database/sql"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/schema"
)

func schemaCommand(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, apply or check the tables of leases",
		Long:  help("The tables that leases live in.", otherHelp),
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		schemaPrintCommand(c),
		schemaUseCommand(c, "apply", "Create the tables where they are missing", schema.Apply),
		schemaUseCommand(c, "check", "Say what is wrong with the tables, if anything is", schema.Check),
	)
	return cmd
}

func schemaPrintCommand(c *console) *cobra.Command {
	var p place
	var dialect string // empty: the dialect of the database
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL that creates the tables; no database is asked",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := schema.Dialect(dialect)
			if !cmd.Flags().Changed("dialect") {
				db, err := p.findDatabase(cmd, c)
				if err != nil {
					return err
				}
				defer db.close()
				d = db.dialect
			}
			if err := p.tables.Validate(d); err != nil {
				return fail(exitUsage, err)
			}
			return fail(exitOutput, schema.Print(c.Stdout, d, p.tables))
		},
	}
	p.addFlags(cmd)
	addChoice(cmd, &dialect, "dialect", "`dialect` of the SQL, instead of a database: postgres, mysql (MariaDB too) or sqlite",
		string(schema.Postgres), string(schema.MySQL), string(schema.SQLite))
	cmd.MarkFlagsMutuallyExclusive("db", "dialect")
	cmd.MarkFlagsMutuallyExclusive("db-file", "dialect")
	return cmd
}

// schemaUseCommand returns a command that applies or checks the tables of a database.
func schemaUseCommand(
	c *console, use, short string, do func(context.Context, *sql.DB, schema.Dialect, schema.Tables) error,
) *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := p.openDatabase(cmd, c)
			if err != nil {
				return err
			}
			defer db.close()
			if err := p.tables.Validate(db.dialect); err != nil {
				return fail(exitUsage, err)
			}
			if err := db.makeFolder(); err != nil {
				return fail(exitUnavailable, err)
			}
			return fail(exitUnavailable, do(cmd.Context(), db.DB.DB, db.dialect, p.tables))
		},
	}
	p.addFlags(cmd)
	return cmd
}
