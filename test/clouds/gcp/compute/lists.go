package compute

import (
	"encoding/base64"
	"net/http"
	"net/url"
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
	// key is what it is sorted by: a page token has that of the last one before, so that it stays good while items come and go.
	key string
}

// page is a part of a list.
type page struct {
	items []item
	next  string
}

// The orders of lists: by name, or the newest first.
const newestFirst = "creationTimestamp desc"

// page returns a page of what the filter selects.
func (r *request) page(all []item) (page, error) {
	query := r.URL.Query()
	wanted, err := parseFilter(query.Get("filter"))
	if err != nil {
		return page{}, err
	}
	order := query.Get("orderBy")
	if order != "" && order != "name" && order != newestFirst {
		return page{}, invalid("orderBy", order, "Lists can be sorted by 'name' and by '%s'.", newestFirst)
	}
	size := maxResults
	if text := query.Get("maxResults"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 0 || size > maxResults {
			return page{}, invalid("maxResults", text, "Must be between 0 and 500.")
		}
	}
	if size == 0 {
		size = maxResults
	}
	after, err := pageAfter(query)
	if err != nil {
		return page{}, err
	}
	found := sorted(all, wanted, order)
	if after != "" {
		found = slices.DeleteFunc(found, func(i item) bool { return compareItems(i.key, after, order) <= 0 })
	}
	p := page{items: found[:min(size, len(found))]}
	if len(p.items) < len(found) {
		p.next = base64.RawURLEncoding.EncodeToString([]byte(p.items[size-1].key + "\n" + query.Get("filter")))
	}
	return p, nil
}

// pageAfter is the key of the last item of the page before; empty for the first page. A token is good for the filter that it was given for.
func pageAfter(query url.Values) (string, error) {
	token := query.Get("pageToken")
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	after, filter, _ := strings.Cut(string(raw), "\n")
	if err != nil || after == "" || filter != query.Get("filter") {
		return "", invalid("pageToken", token, "The page token is not one of this list.")
	}
	return after, nil
}

// sorted are the selected items, decoded and in the order of the list.
func sorted(all []item, wanted filter, order string) (found []item) {
	for _, i := range all {
		i.value = decoded(i.value)
		fields, ok := i.value.(map[string]any)
		if !ok || wanted != nil && !wanted(fields) {
			continue
		}
		name, _ := fields["name"].(string)
		if i.key = name + " " + i.scope; order == newestFirst {
			at, ok := fields["creationTimestamp"].(string)
			if !ok {
				at, _ = fields["insertTime"].(string)
			}
			i.key = at + " " + i.key
		}
		found = append(found, i)
	}
	slices.SortStableFunc(found, func(a, b item) int { return compareItems(a.key, b.key, order) })
	return found
}

func compareItems(a, b, order string) int {
	if order == newestFirst {
		return strings.Compare(b, a)
	}
	return strings.Compare(a, b)
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

// partial leaves out the zones that do not answer, with a warning, if the request allows that; else there is no answer.
func (s *Server) partial(r *request, answer, scopes map[string]any, collection string) error {
	var unreachable []any
	for _, zone := range s.unreachable {
		if strings.HasPrefix(zone, "regions/") || zone == "global" {
			if collection != "instances" { // Those are only in zones.
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

// leaveOut makes a list lack zones without any warning, or with one about the list alone.
func (s *Server) leaveOut(answer, scopes map[string]any) {
	for _, zone := range s.leftOut {
		delete(scopes, "zones/"+zone)
	}
	if s.warning != "" {
		answer["warning"] = map[string]any{"code": s.warning, "message": "The list is not complete."}
	}
}

// instanceItems are the instances that lists show, which may lag behind.
func instanceItems(_ *Server, r *request) (all []item) {
	r.project.gone = slices.DeleteFunc(r.project.gone, func(i *instance) bool { return !r.now.Before(i.unlistedAt) })
	for _, i := range slices.Concat(r.project.instances, r.project.gone) {
		if i.visible && !r.now.Before(i.listedAt) && (r.zone == "" || r.zone == i.zone) {
			all = append(all, item{scope: "zones/" + i.zone, value: i.Instance})
		}
	}
	return all
}

func diskItems(_ *Server, r *request) (all []item) {
	for _, d := range r.project.disks {
		if r.zone == "" || r.zone == d.zone {
			all = append(all, item{scope: "zones/" + d.zone, value: d.Disk})
		}
	}
	return all
}

func operationItems(_ *Server, r *request) (all []item) {
	for _, o := range r.project.operations {
		if r.zone == "" || r.zone == o.zone {
			all = append(all, item{scope: "zones/" + o.zone, value: o.Operation})
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
