// Package pages tests the pages of the recipes: their code is the tested code, and their commands and files work. It contains
// only tests.
package pages
