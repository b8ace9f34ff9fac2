package ec2

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// paging is how a describe call is paged, see
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html#api-pagination.
type paging struct {
	// scope ties a token to the action that gave it.
	scope string
	// min and max bound MaxResults.
	min, max int
	// idsExclude is the list parameter that MaxResults may not be combined with; empty for none.
	idsExclude string
}

// page cuts one page out of the items, which must be ordered by their ascending sequence numbers, so
// that a token stays good while items come and go. It returns the token for the next page, or none.
func page[T any](p params, rules paging, items []T, seq func(T) int) ([]T, string, error) {
	after, err := rules.decode(p["NextToken"])
	if err != nil {
		return nil, "", err
	}
	if !p.has("MaxResults") && after < 0 {
		return items, "", nil
	}
	size, err := p.number("MaxResults", rules.max)
	if err != nil {
		return nil, "", err
	}
	if size < rules.min || size > rules.max {
		return nil, "", fail("InvalidParameterValue",
			"Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", size, rules.min, rules.max)
	}
	if rules.idsExclude != "" && len(p.strings(rules.idsExclude)) > 0 {
		return nil, "", fail("InvalidParameterCombination",
			"The parameter %s cannot be used with the parameter maxResults", rules.idsExclude)
	}
	var out []T
	for _, item := range items {
		if seq(item) <= after {
			continue
		}
		if len(out) == size {
			return out, rules.encode(seq(out[len(out)-1])), nil
		}
		out = append(out, item)
	}
	return out, "", nil
}

func (r paging) encode(seq int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", r.scope, seq))
}

// decode is the last sequence number of the page before, -1 for the first page.
func (r paging) decode(token string) (int, error) {
	if token == "" {
		return -1, nil
	}
	raw, err := base64.StdEncoding.DecodeString(token)
	rest, ok := strings.CutPrefix(string(raw), r.scope+":")
	n, convErr := strconv.Atoi(rest)
	if err != nil || !ok || convErr != nil {
		return 0, fail("InvalidNextToken", "The specified NextToken is not valid.")
	}
	return n, nil
}
