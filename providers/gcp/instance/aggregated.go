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
	Items        map[string]scopedList[T]
	Unreachables []string
	// Warning is about the list as a whole.
	Warning struct {
		Code string
	}
	NextPageToken string
}

// zones are those that a list says something of.
type zones map[string]bool

// maxOperationPages is how many pages of operations are read: Compute Engine keeps all of two weeks, and looks through them for each
// filter.
const maxOperationPages = 20

// aggregated returns all pages of what a filter selects in all zones of a project. Nothing may be concluded from the absence of what a
// zone did not answer about: beside what there is in the others the error is a driver.Incomplete then. Nor from what Compute Engine has
// left out for another reason; such a list fails. answered are the zones of which each page has something, or says that it has nothing.
func aggregated[T any](
	ctx context.Context, d *Driver, scope driver.Scope, kind, fields, filter string,
) (all []T, answered zones, err error) {
	name := kind + ".aggregatedList"
	if kind == "operations" {
		name = "globalOperations.aggregatedList"
	}
	query := url.Values{
		"filter": {filter}, "maxResults": {"500"}, "returnPartialSuccess": {"true"},
		"fields": {"nextPageToken,unreachables,warning/code,items/*/warning/code,items/*/" + kind + "(" + fields + ")"},
	}
	var silent []string
	for pages := 1; pages == 1 || query.Get("pageToken") != ""; pages++ {
		if kind == "operations" && pages > maxOperationPages {
			return all, nil, driver.NewUnknownError(name, "", errors.Errorf("there are more than %d pages of operations", maxOperationPages))
		}
		var found page[T]
		r := request{name: name, method: http.MethodGet, path: []string{"aggregated", kind}, query: query}
		if err := d.call(ctx, scope, r, &found); err != nil {
			return nil, nil, ofSpec(err) // What was not found is the project, or the address: that shows nothing of what is in it.
		}
		missing, err := found.silent(name, kind)
		if err != nil {
			return nil, nil, err
		}
		silent = append(silent, missing...)
		for _, list := range found.Items {
			all = append(append(append(all, list.Instances...), list.Disks...), list.Operations...)
		}
		answered = found.alsoAnswered(answered, pages == 1)
		query.Set("pageToken", found.NextPageToken)
	}
	return all, answered, incomplete(name, silent)
}

// alsoAnswered are those of the zones, or all if it is the first page, of which the page has something or says that it has nothing. A zone
// that it does not name, or only names, may have been left out.
func (p *page[T]) alsoAnswered(before zones, first bool) zones {
	answered := zones{}
	for scope, list := range p.Items {
		zone, ok := strings.CutPrefix(scope, "zones/")
		complete := len(list.Instances)+len(list.Disks)+len(list.Operations) > 0 || list.Warning.Code == noResults
		if ok && complete && (first || before[zone]) {
			answered[zone] = true
		}
	}
	return answered
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

// noResults is the warning that a scope, or a list, has nothing to show; unreachable and partial come with the names of what is missing.
const (
	noResults   = "NO_RESULTS_ON_PAGE"
	unreachable = "UNREACHABLE"
	partial     = "PARTIAL_SUCCESS"
)

// zonePattern finds the zone in what names something that cannot be reached, whose form is not documented; elsewhere is what is in no zone.
var (
	zonePattern = regexp.MustCompile(`(?:^|/)zones/([a-z0-9-]+)(?:/|$)`)
	elsewhere   = regexp.MustCompile(`(?:^|/)(?:regions/[a-z0-9-]+|global)(?:/|$)`)
)

// silent are the zones that a page lacks. A page that may lack anything else is an error. Disks and operations of regions, and of no place,
// are not missed: the provider makes none.
func (p *page[T]) silent(name, kind string) (missing []string, err error) {
	lacks := p.Unreachables
	for scope, list := range p.Items {
		switch list.Warning.Code {
		case "", noResults:
		case unreachable:
			lacks = append(lacks, scope)
		default:
			return nil, driver.NewUnknownError(name, list.Warning.Code, errors.Errorf("the list is incomplete: %s", scope))
		}
	}
	switch code := p.Warning.Code; {
	case code == "" || code == noResults:
	case (code == unreachable || code == partial) && len(lacks) > 0:
	default:
		return nil, driver.NewUnknownError(name, code, errors.New("the list is incomplete, and does not show what it lacks"))
	}
	for _, what := range lacks {
		zone := zonePattern.FindStringSubmatch(what)
		switch {
		case zone != nil:
			missing = append(missing, zone[1])
		case kind == "instances" || !elsewhere.MatchString(what):
			return nil, driver.NewUnknownError(name, "", errors.Errorf("the list is incomplete: %s", what))
		}
	}
	return missing, nil
}

// lacks returns the error if it is that of a list that lacks a zone, or all of them. A zone that is not known may be any.
func lacks(err error, zone string) error {
	if list := driver.AsIncomplete(err); list != nil && zone != "" && !slices.Contains(list.Missing, zone) {
		return nil
	}
	return err
}
