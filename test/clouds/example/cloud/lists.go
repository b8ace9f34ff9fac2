package cloud

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// filter selects the items of a list. Values of the same key are alternatives; all keys must hold.
type filter struct {
	labels map[string][]string
	names  []string
	status []string
	kinds  []string
	ids    []string
	size   int
	after  string
}

// filterOf reads the query of a list; ok is false if it cannot be parsed.
func filterOf(query url.Values, maximum int) (f filter, ok bool) {
	f = filter{labels: map[string][]string{}, size: maximum}
	for k, values := range query {
		switch k {
		case "label":
			for _, v := range values {
				name, value, _ := strings.Cut(v, "=")
				f.labels[name] = append(f.labels[name], value)
			}
		case "name":
			f.names = values
		case "status":
			f.status = values
		case "kind":
			f.kinds = values
		case "id":
			f.ids = values
		case "pageToken":
			f.after = values[0]
		case "pageSize":
			size, err := strconv.Atoi(values[0])
			if err != nil || size < 1 {
				return f, false
			}
			f.size = min(size, maximum)
		default:
			return f, false
		}
	}
	return f, true
}

// matches returns whether a resource has the labels and one of the names. A label without a value is one of any value.
func (f filter) matches(name string, labels map[string]string) bool {
	if len(f.names) > 0 && !slices.Contains(f.names, name) {
		return false
	}
	for k, wanted := range f.labels {
		value, ok := labels[k]
		if !ok || !slices.Contains(wanted, value) && !slices.Contains(wanted, "") {
			return false
		}
	}
	return true
}

// list answers with a page of items, in the order of their keys.
func list[S, T any](c *Cloud, r request, all map[string]S, item func(filter, S) (T, bool)) reply {
	f, ok := filterOf(r.query, c.options.PageSize)
	if !ok {
		return refuse(http.StatusBadRequest, CodeInvalidArgument, "the query is not understood")
	}
	type keyed struct {
		key  string
		item T
	}
	var found []keyed
	for k, s := range all {
		if k <= f.after && f.after != "" {
			continue
		}
		if i, ok := item(f, s); ok {
			found = append(found, keyed{key: k, item: i})
		}
	}
	slices.SortFunc(found, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	next := ""
	if len(found) > f.size {
		found = found[:f.size]
		next = found[f.size-1].key
	}
	items := make([]T, 0, len(found))
	for _, k := range found {
		items = append(items, k.item)
	}
	return answer(http.StatusOK, page{Items: items, NextPageToken: next})
}

func (c *Cloud) listMachines(a *account, r request) reply {
	return list(c, r, a.machines, func(f filter, m *machine) (Machine, bool) { return m.Machine, f.matches(m.Name, m.Labels) })
}

func (c *Cloud) listParts(a *account, r request) reply {
	return list(c, r, a.parts[r.kind], func(f filter, p *part) (Part, bool) { return p.Part, f.matches(p.Name, p.Labels) })
}

func (c *Cloud) listOperations(a *account, r request) reply {
	return list(c, r, a.operations, func(f filter, o *operation) (Operation, bool) {
		return o.Operation, f.matches(o.Name, o.Labels) &&
			(len(f.status) == 0 || slices.Contains(f.status, o.Status)) &&
			(len(f.kinds) == 0 || slices.Contains(f.kinds, o.Kind)) &&
			(len(f.ids) == 0 || slices.Contains(f.ids, o.ID))
	})
}

func (c *Cloud) listPower(a *account, r request) reply {
	return list(c, r, a.machines, func(f filter, m *machine) (Power, bool) {
		power := Power{Zone: m.Zone, Name: m.Name, On: m.poweredOn, Failure: cmp.Or(m.powerFailure, m.Failure)}
		return power, f.matches(m.Name, m.Labels) && (m.State == StateRunning || m.State == StateStopped)
	})
}

func (c *Cloud) listTypes(_ *account, r request) reply {
	types := map[string]Type{}
	for _, t := range c.options.Types {
		types[t.Name] = t
	}
	return list(c, r, types, func(f filter, t Type) (Type, bool) { return t, f.matches(t.Name, nil) })
}

func (c *Cloud) getOperation(a *account, r request) reply {
	o, ok := a.operations[r.name]
	if !ok {
		return missing("operation", r)
	}
	return answer(http.StatusOK, o.Operation)
}

func (c *Cloud) getPart(a *account, r request) reply {
	p, ok := a.parts[r.kind][key(r.zone, r.name)]
	if !ok {
		return missing(r.kind, r)
	}
	return answer(http.StatusOK, p.Part)
}
