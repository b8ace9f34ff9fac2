package ec2

// resource is what a plain describe call needs to know of a kind of resource.
type resource[T any] struct {
	// idList is the list parameter of IDs, prefix the form of the IDs; no form is checked when empty.
	idList, prefix string
	id             func(T) string
	// malformed and missing are error codes; noun names the kind in messages.
	malformed, missing, noun string
	filters                  filterTable[T]
	tags                     func(T) map[string]string
	paging                   paging
	seq                      func(T) int
}

// describe selects items by IDs, filters and page. An ID that is not found is an error.
func describe[T any](p params, items []T, r resource[T]) ([]T, string, error) {
	selected := items
	if ids := p.strings(r.idList); len(ids) > 0 {
		found, err := byIDs(items, ids, r)
		if err != nil {
			return nil, "", err
		}
		selected = found
	}
	filters, err := parseFilters(p)
	if err != nil {
		return nil, "", err
	}
	if selected, err = selectBy(selected, filters, r.filters, r.tags); err != nil {
		return nil, "", err
	}
	selected, next, err := page(p, r.paging, selected, r.seq)
	if err != nil {
		return nil, "", err
	}
	if p.dryRun() {
		return nil, "", errDryRun
	}
	return selected, next, nil
}

func byIDs[T any](items []T, ids []string, r resource[T]) ([]T, error) {
	wanted := map[string]bool{}
	for _, id := range ids {
		if r.prefix != "" && !wellFormed(id, r.prefix) {
			return nil, fail(r.malformed, `Invalid id: "%s" (expecting "%s-...")`, id, r.prefix)
		}
		wanted[id] = true
	}
	var found []T
	for _, item := range items {
		if wanted[r.id(item)] {
			found = append(found, item)
			delete(wanted, r.id(item))
		}
	}
	if len(wanted) > 0 {
		return nil, notFound(r.missing, r.noun, sortedKeys(wanted))
	}
	return found, nil
}
