// Package pages tests the pages of the recipes.
package pages
