package doccheck

import (
	"slices"
	"strings"
	"testing"
)

// Compare reports what the page documents and the code does not have, and what the code has and the page does not
// document. what names the things compared.
func Compare(t testing.TB, page *Page, what string, documented, coded []string) {
	t.Helper()
	if unknown := missing(documented, coded); len(unknown) > 0 {
		t.Errorf("%s documents %s that the code does not have: %s", page.Path, what, strings.Join(unknown, ", "))
	}
	if silent := missing(coded, documented); len(silent) > 0 {
		t.Errorf("%s does not document these %s of the code: %s", page.Path, what, strings.Join(silent, ", "))
	}
}

// missing are those of some that are not among others, sorted and once each.
func missing(some, others []string) []string {
	var found []string
	for _, one := range some {
		if !slices.Contains(others, one) {
			found = append(found, one)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
