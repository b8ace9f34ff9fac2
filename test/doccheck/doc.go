// Package doccheck lets tests compare the documentation with the code: it reads the tables, the examples and the links
// of a markdown page, collects the constants that a Go package uses, compares the two in both directions, and has
// the examples checked by a real API server. See README.md.
package doccheck
