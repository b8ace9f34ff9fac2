package instance

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// scopedList is what an aggregated list has of one zone or region.
type scopedList[T any] struct {
	Instances  []T `json:"instances"`
	Disks      []T `json:"disks"`
	Operations []T `json:"operations"`
	Warning    struct {
		Code string `json:"code"`
	} `json:"warning"`
}

// page is one page of an aggregated list.
type page[T any] struct {
	Items         map[string]scopedList[T]
	Unreachables  []string
	NextPageToken string
}

// aggregated returns all pages of what a filter selects in all zones of a project. Nothing may be concluded from the absence of what a
// zone did not answer about: beside what there is in the others the error is a driver.Incomplete then. Nor from what Compute Engine has
// left out for another reason; such a list fails.
func aggregated[T any](ctx context.Context, d *Driver, scope driver.Scope, kind, fields, filter string) ([]T, error) {
	name := kind + ".aggregatedList"
	if kind == "operations" {
		name = "globalOperations.aggregatedList"
	}
	query := url.Values{
		"filter": {filter}, "maxResults": {"500"}, "returnPartialSuccess": {"true"},
		"fields": {"nextPageToken,unreachables,items/*/warning/code,items/*/" + kind + "(" + fields + ")"},
	}
	var all []T
	var silent []string
	for more := true; more; more = query.Get("pageToken") != "" {
		var found page[T]
		r := request{name: name, method: http.MethodGet, path: []string{"aggregated", kind}, query: query}
		if err := d.call(ctx, scope, r, &found); err != nil {
			return nil, ofSpec(err) // What was not found is the project, or the address: that shows nothing of what is in it.
		}
		missing, err := found.silent(name)
		if err != nil {
			return nil, err
		}
		silent = append(silent, missing...)
		for _, list := range found.Items {
			all = append(append(append(all, list.Instances...), list.Disks...), list.Operations...)
		}
		query.Set("pageToken", found.NextPageToken)
	}
	return all, incomplete(name, silent)
}

// incomplete is the error of a list without some zones; nil without any.
func incomplete(name string, silent []string) error {
	if len(silent) == 0 {
		return nil
	}
	slices.Sort(silent)
	silent = slices.Compact(silent)
	return driver.NewIncomplete(silent, driver.NewUnknownError(name, "", errors.Errorf("the list lacks zones that do not answer: %s",
		strings.Join(silent, ", "))))
}

// zonePattern finds the zone in what names something that cannot be reached, whose form is not documented.
var zonePattern = regexp.MustCompile(`(?:^|/)zones/([a-z0-9-]+)(?:/|$)`)

// silent are the zones that a page lacks. A page that may lack anything else is an error.
func (p *page[T]) silent(name string) (zones []string, err error) {
	lacks := p.Unreachables
	for scope, list := range p.Items {
		switch list.Warning.Code {
		case "", "NO_RESULTS_ON_PAGE":
		case "UNREACHABLE":
			lacks = append(lacks, scope)
		default:
			return nil, driver.NewUnknownError(name, list.Warning.Code, errors.Errorf("the list is incomplete: %s", scope))
		}
	}
	for _, what := range lacks {
		zone := zonePattern.FindStringSubmatch(what)
		if zone == nil {
			return nil, driver.NewUnknownError(name, "", errors.Errorf("the list is incomplete: %s", what))
		}
		zones = append(zones, zone[1])
	}
	return zones, nil
}

// lacks returns the error if it is that of a list that lacks a zone, or all of them. A zone that is not known may be any.
func lacks(err error, zone string) error {
	if partial := driver.AsIncomplete(err); partial != nil && zone != "" && !slices.Contains(partial.Missing, zone) {
		return nil
	}
	return err
}
