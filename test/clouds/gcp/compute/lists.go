package compute

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxResults is how many items a page has, by default and at most.
const maxResults = 500

var listParameters = []string{"filter", "maxResults", "pageToken", "orderBy", "returnPartialSuccess"}

// item is one of a list with the scope that it is in, such as zones/us-central1-a.
type item struct {
	scope string
	value any
}

// page is a part of a list.
type page struct {
	items []item
	next  string
}

// page selects what the filter wants, and of that what the page is. The token is where the next page begins.
func (r *request) page(all []item) (page, error) {
	query := r.URL.Query()
	wanted, err := parseFilter(query.Get("filter"))
	if err != nil {
		return page{}, err
	}
	if query.Get("orderBy") != "" {
		return page{}, invalid("orderBy", query.Get("orderBy"), "Not simulated.")
	}
	size := maxResults
	if text := query.Get("maxResults"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 1 || size > maxResults {
			return page{}, invalid("maxResults", text, "Must be between 1 and 500.")
		}
	}
	begin := 0
	if token := query.Get("pageToken"); token != "" {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		text, filter, _ := strings.Cut(string(raw), " ")
		if begin, _ = strconv.Atoi(text); err != nil || begin <= 0 || filter != query.Get("filter") {
			return page{}, invalid("pageToken", token, "The page token is not one of this list.")
		}
	}
	var found []item
	for _, i := range all {
		i.value = decoded(i.value)
		if fields, ok := i.value.(map[string]any); ok && (wanted == nil || wanted(fields)) {
			found = append(found, i)
		}
	}
	begin = min(begin, len(found))
	end := min(begin+size, len(found))
	p := page{items: found[begin:end]}
	if end < len(found) {
		p.next = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(end) + " " + query.Get("filter")))
	}
	return p, nil
}

// list answers with the items of the scope of the request.
func list(kind string, items func(*Server, *request) []item) func(*Server, *request) (any, error) {
	return func(s *Server, r *request) (any, error) {
		p, err := r.page(items(s, r))
		if err != nil {
			return nil, err
		}
		answer := map[string]any{"kind": "compute#" + kind, "id": r.URL.Path}
		values := make([]any, 0, len(p.items))
		for _, i := range p.items {
			values = append(values, i.value)
		}
		if len(values) > 0 {
			answer["items"] = values
		}
		if p.next != "" {
			answer["nextPageToken"] = p.next
		}
		return answer, nil
	}
}

// aggregated answers with the items of all zones, by scope. A scope without any has a warning instead.
func aggregated(kind, collection string, items func(*Server, *request) []item) func(*Server, *request) (any, error) {
	return func(s *Server, r *request) (any, error) {
		p, err := r.page(items(s, r))
		if err != nil {
			return nil, err
		}
		scopes := map[string]any{}
		for _, zone := range sortedKeys(s.catalog.Zones) {
			scopes["zones/"+zone] = map[string]any{"warning": map[string]any{
				"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope 'zones/" + zone + "' on this page.",
				"data": []any{map[string]any{"key": "scope", "value": "zones/" + zone}},
			}}
		}
		lists := map[string][]any{}
		for _, i := range p.items {
			lists[i.scope] = append(lists[i.scope], i.value)
		}
		for scope, values := range lists {
			scopes[scope] = map[string]any{collection: values}
		}
		answer := map[string]any{"kind": "compute#" + kind, "id": r.URL.Path, "items": scopes}
		s.leaveOut(answer, scopes)
		if err := s.partial(r, answer, scopes, collection); err != nil {
			return nil, err
		}
		if p.next != "" {
			answer["nextPageToken"] = p.next
		}
		return answer, nil
	}
}

// partial leaves out the zones that do not answer, and says so, if the request wants that; else there is no answer.
func (s *Server) partial(r *request, answer, scopes map[string]any, collection string) error {
	var unreachable []any
	for _, zone := range s.unreachable {
		if strings.HasPrefix(zone, "regions/") || zone == "global" {
			if collection != "instances" { // Those are in zones alone.
				scopes[zone] = map[string]any{"warning": map[string]any{"code": "UNREACHABLE", "message": "It cannot be reached."}}
				unreachable = append(unreachable, zone+"/"+collection)
			}
			continue
		}
		scopes["zones/"+zone] = map[string]any{"warning": map[string]any{"code": "UNREACHABLE", "message": "The zone cannot be reached."}}
		unreachable = append(unreachable, "zones/"+zone+"/"+collection)
	}
	if len(unreachable) == 0 {
		return nil
	}
	if r.URL.Query().Get("returnPartialSuccess") != "true" {
		return fail(http.StatusServiceUnavailable, "backendError", "Backend Error")
	}
	answer["unreachables"] = unreachable
	return nil
}

// leaveOut makes a list lack zones without a word about them, or with a warning about the list alone.
func (s *Server) leaveOut(answer, scopes map[string]any) {
	for _, zone := range s.leftOut {
		delete(scopes, "zones/"+zone)
	}
	if s.warning != "" {
		answer["warning"] = map[string]any{"code": s.warning, "message": "The list is not complete."}
	}
}

func instanceItems(_ *Server, r *request) (all []item) {
	for _, i := range r.project.instances {
		if i.visible && (r.zone == "" || r.zone == i.zone) {
			all = append(all, item{"zones/" + i.zone, i.Instance})
		}
	}
	return all
}

func diskItems(_ *Server, r *request) (all []item) {
	for _, d := range r.project.disks {
		if r.zone == "" || r.zone == d.zone {
			all = append(all, item{"zones/" + d.zone, d.Disk})
		}
	}
	return all
}

func operationItems(_ *Server, r *request) (all []item) {
	for _, o := range r.project.operations {
		if r.zone == "" || r.zone == o.zone {
			all = append(all, item{"zones/" + o.zone, o.Operation})
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
