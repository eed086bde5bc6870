package main

import (
	"context"
	"database/sql"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/schema"
)

func (m *Main) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print, apply or check the tables of leases",
		Long:  help("The tables that leases live in.", otherHelp),
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		m.schemaPrintCommand(),
		m.schemaUseCommand("apply", "Create the tables where they are missing", schema.Apply),
		m.schemaUseCommand("check", "Say what is wrong with the tables, if anything is", schema.Check),
	)
	return cmd
}

func (m *Main) schemaPrintCommand() *cobra.Command {
	var p place
	var dialect string // empty: the dialect of the database
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL that creates the tables; no database is asked",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := schema.Dialect(dialect)
			if !cmd.Flags().Changed("dialect") {
				db, err := m.findDatabase(cmd, &p)
				if err != nil {
					return err
				}
				defer db.close()
				d = db.dialect
			}
			if err := p.tables.Validate(d); err != nil {
				return fail(exitUsage, err)
			}
			return fail(exitOutput, schema.Print(m.Stdout, d, p.tables))
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
func (m *Main) schemaUseCommand(
	use, short string, do func(context.Context, *sql.DB, schema.Dialect, schema.Tables) error,
) *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := m.openDatabase(cmd, &p)
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
