package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"millwright.dev/providers/driver"
)

// maxListed is how many resources that cannot be used a message names.
const maxListed = 3

// unresolved adds to an error of class Unresolved where was looked: the same name may well exist in another region or account.
func (r *region) unresolved(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || e.Class != driver.ClassUnresolved {
		return err
	}
	where := *e
	where.Err = &apiMessage{err: e.Err, message: fmt.Sprintf("%s (looked up in region %s with %s)",
		strings.TrimRight(e.Err.Error(), "."), r.name, r.credentials())}
	return &where
}

// credentials says, for people, with which credentials AWS was asked.
func (r *region) credentials() string {
	if r.identity != "" {
		return "AWSIdentity " + r.identity
	}
	return "the provider's own credentials"
}

// searched shows filters as people write them: name=value, with | between alternatives.
func searched(filters []types.Filter) string {
	parts := make([]string, 0, len(filters))
	for _, f := range filters {
		parts = append(parts, aws.ToString(f.Name)+"="+strings.Join(f.Values, "|"))
	}
	return strings.Join(parts, ", ")
}

// listed joins what was found, in a stable order since it ends in a condition, and no more than a few.
func listed(found []string) string {
	slices.Sort(found)
	if more := len(found) - maxListed; more > 0 {
		found = append(slices.Clone(found[:maxListed]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(found, ", ")
}

// partition splits a list in two, in the same order.
func partition[T any](list []T, match func(T) bool) (matching, others []T) {
	for _, item := range list {
		if match(item) {
			matching = append(matching, item)
		} else {
			others = append(others, item)
		}
	}
	return matching, others
}
