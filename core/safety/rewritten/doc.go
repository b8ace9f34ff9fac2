// Package rewritten finds out whether the API server stores what a controller sends. An admission policy of another team may change
// the labels or owner references of a new or updated object, so that its owner does not find it again and creates others without end.
package rewritten
