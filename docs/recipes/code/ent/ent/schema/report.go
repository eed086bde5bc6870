// Package schema has the schema of the recipe for ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Report is a row that only the holder of the lock may write.
type Report struct{ ent.Schema }

// Fields returns the columns.
func (Report) Fields() []ent.Field {
	return []ent.Field{field.Int("id"), field.String("text")}
}
